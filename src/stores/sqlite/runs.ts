import { checkPageLimit } from '../../core/page-limit.js'
import { isFinished, type Run } from '../../core/run.js'
import type { CancelResult, Page, RetryResult, RunQuery, Stamp } from '../../core/store.js'
import type { Connection } from './connection.js'
import { dedupeOf, openDedupe } from './dedupe.js'
import type { Value } from './driver.js'
import type { SqliteFile } from './file.js'
import { handOn } from './names.js'
import { makeReady } from './run-changes.js'
import { endRun, requestCancel } from './run-endings.js'
import { RUN_COLUMNS, type RunRecord, type RunRow, runRecord, stateNumber, waitNumber } from './run-row.js'
import { toRun } from './run-view.js'
import { loadRun, runNumber, saveRun } from './run-write.js'
import type { Tx } from './tx.js'
import { type Steps, stepwise } from './write-queue.js'

export function getRun(db: Connection, id: string): Run | undefined {
  const number = runNumber(id)
  const run = number === undefined ? undefined : loadRun({ db }, number)
  return run === undefined ? undefined : toRun(run)
}

function find(tx: Tx, id: string): RunRecord | undefined {
  const number = runNumber(id)
  return number === undefined ? undefined : loadRun(tx, number)
}

export function cancelRun(tx: Tx, id: string): CancelResult {
  const run = find(tx, id)
  if (run === undefined) return 'missing'
  if (isFinished(run)) return 'finished'
  if (run.state === 'running') {
    requestCancel(tx, run)
    return 'requested'
  }
  endRun(tx, run, 'cancelled')
  handOn(tx)
  return 'cancelled'
}

export function retryRun(tx: Tx, id: string): RetryResult {
  const run = find(tx, id)
  if (run === undefined) return 'missing'
  if (!isFinished(run) || run.state === 'succeeded') return 'refused'
  const same = run.dedupe === null ? undefined : dedupeOf(tx, run.target, run.dedupe)
  if (same !== undefined && same !== run.id) return 'refused'
  reopen(tx, run)
  handOn(tx)
  return 'ready'
}

function reopen(tx: Tx, run: RunRecord): void {
  if (run.ended !== null) tx.counters.forgetEnded(1)
  Object.assign(run, {
    ...{ ended: null, finishedAt: null, reason: undefined, error: null, result: null, startBy: null },
    ...{ cancelRequested: false, rescued: false, failures: 0, takeovers: 0, readyAt: tx.now },
  } satisfies Partial<RunRecord>)
  openDedupe(tx, run.target, run.dedupe, run.id)
  makeReady(tx, run)
}

export function* stampRuns(tx: Tx, stamps: readonly Stamp[]): Steps<void> {
  yield* stepwise(stamps, (stamp) => stampRun(tx, stamp))
  handOn(tx)
}

function stampRun(tx: Tx, { run: id, key }: Stamp): void {
  const run = find(tx, id)
  if (run === undefined || !run.unstamped || isFinished(run)) return
  run.unstamped = false
  run.key = key
  if (run.waitsFor === 'stamp') makeReady(tx, run)
  else saveRun(tx, run)
}

/** How many runs one look may pass over: a search through the whole history must not hold up the event loop. */
const WINDOW = 5_000
/** After so many looks a schedule is rare among the runs, and is looked for by itself. */
const LOOKS = 5

/**
 * Newest first. What no index narrows down is looked for in windows of ids, each of which is a short read: the event
 * loop goes on between them.
 */
export async function listRuns(file: SqliteFile, query: RunQuery): Promise<Page<Run>> {
  checkPageLimit(query.limit)
  const { text, values, alone } = conditions(query)
  const select = `select ${RUN_COLUMNS} from belfry_runs where id < ? and id >= ?${text} order by id desc limit ?`
  const found: RunRecord[] = []
  // What an index finds needs no bound.
  const most = alone ? Number.POSITIVE_INFINITY : (query.look ?? Number.POSITIVE_INFINITY)
  const [oldest, newest] = await file.read(bounds)
  let before = Math.min(query.after === undefined ? newest + 1 : (runNumber(query.after) ?? 0), newest + 1)
  for (
    let look = alone && query.tick !== undefined ? LOOKS : 0;
    found.length <= query.limit && before > oldest;
    look += 1
  ) {
    if (look * WINDOW >= most) return { items: found.map(toRun), next: String(before) }
    const [upper, from] = [before, alone && look >= LOOKS ? oldest : Math.max(before - WINDOW, oldest)]
    const missing = query.limit + 1 - found.length
    const rows = await file.read((db) => db.all<RunRow>(select, upper, from, ...values, missing))
    found.push(...rows.map(runRecord))
    before = from
    await file.breathe()
  }
  const items = found.slice(0, query.limit).map(toRun)
  const last = items.at(-1)
  return found.length > query.limit && last !== undefined ? { items, next: last.id } : { items }
}

const OLDEST = 'select id from belfry_runs order by id limit 1'
const NEWEST = 'select id from belfry_runs order by id desc limit 1'

function bounds(db: Connection): [number, number] {
  return [db.get<[number]>(OLDEST)?.[0] ?? 1, db.get<[number]>(NEWEST)?.[0] ?? 0]
}

function conditions(query: RunQuery): { text: string; values: Value[]; alone: boolean } {
  const { schedule, tick, job, sink, key, states, waitsFor } = query
  const parts: [string, ...Value[]][] = []
  if (schedule !== undefined) parts.push(['schedule = ?', schedule])
  if (tick !== undefined) parts.push(['tick = ?', tick])
  if (job !== undefined) parts.push(['target = ?', `job:${job}`])
  if (sink !== undefined) parts.push(['target = ?', `sink:${sink}`])
  if (key !== undefined) parts.push(['key = ?', key])
  if (states !== undefined) parts.push([`state in (${states.map(stateNumber).join(', ') || 'null'})`])
  if (waitsFor !== undefined) parts.push([`state = 0 and waits_for = ${waitNumber(waitsFor)}`])
  return {
    text: parts.map(([condition]) => ` and ${condition}`).join(''),
    values: parts.flatMap(([, ...values]) => values),
    alone: schedule !== undefined && (tick !== undefined || parts.length === 1),
  }
}
