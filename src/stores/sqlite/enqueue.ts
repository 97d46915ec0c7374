import { failure } from '../../core/errors.js'
import type { NewRun } from '../../core/run.js'
import type { EnqueueResult } from '../../core/store.js'
import { targetName, targetOptions, toText } from '../../core/stored-text.js'
import type { Connection } from './connection.js'
import { dedupeOf, openDedupe } from './dedupe.js'
import { handOn, oldestStanding, oldestWaiting } from './names.js'
import { engagedRuns, makeWay } from './run-endings.js'
import { keepNumber, originNumber } from './run-row.js'
import { insertRun } from './run-write.js'
import type { Tx } from './tx.js'
import type { Steps } from './write-queue.js'

/** As long as one is in the making, nobody else can write: no beat, no renewal, in no process. */
const MOST = 10_000

/** How many plain runs one statement makes. */
const CHUNK = 100

export function* enqueueRuns(tx: Tx, runs: readonly NewRun[]): Steps<EnqueueResult[]> {
  if (runs.length > MOST) {
    throw failure(
      'OPTION_INVALID',
      `${runs.length} runs at once are too many for a SQLite file, which has one writer: enqueue at most ${MOST} in one call`,
    )
  }
  const results: EnqueueResult[] = []
  const plain: NewRun[] = []
  for (const run of runs) {
    if (isPlain(run)) plain.push(run)
    if (plain.length === CHUNK || !isPlain(run)) results.push(...enqueuePlain(tx, plain.splice(0)))
    if (!isPlain(run)) results.push(enqueueRun(tx, run))
    yield
  }
  results.push(...enqueuePlain(tx, plain))
  handOn(tx)
  return results
}

/** Nothing can refuse it, and nothing waits for it. */
function isPlain({ key, dedupe, schedule }: NewRun): boolean {
  return key === undefined && dedupe === undefined && schedule === undefined
}

const ADD_PLAIN = `insert into belfry_runs (target, options, payload, priority, keep, ready_at, origin, unstamped, state,
    waits_for, engaged, created_at)
  select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, ?2, 0, 1, 0, 0, ?3
  from json_each(?1)`

function enqueuePlain({ db, now, wakes }: Tx, runs: readonly NewRun[]): EnqueueResult[] {
  if (runs.length === 0) return []
  wakes.add('runs')
  const rows = runs.map(({ target, payload, priority, keep, readyAt, delayMs = 0 }) => [
    ...[targetName(target), targetOptions(target), toText(payload), priority, keepNumber(keep)],
    readyAt ?? now + delayMs,
  ])
  const last = db.insert(ADD_PLAIN, JSON.stringify(rows), originNumber('enqueue'), now) ?? 0
  // Numbered one after another: nobody else writes meanwhile.
  return runs.map((_, at) => ({ outcome: 'enqueued', run: String(last - runs.length + 1 + at) }))
}

function enqueueRun(tx: Tx, run: NewRun): EnqueueResult {
  const { now } = tx
  const { origin, priority, keep, schedule = null, backfill = null, dedupe = null, dedupeForMs = 0 } = run
  const readyAt = run.readyAt ?? now + (run.delayMs ?? 0)
  const target = targetName(run.target)
  const refused = refusal(tx, run, target, readyAt)
  if (refused !== undefined) return refused
  const id = insertRun(tx, {
    ...{ target, origin, schedule, backfill, priority, keep, dedupe, readyAt },
    key: run.key,
    options: targetOptions(run.target),
    tick: run.tick ?? (origin === 'trigger' ? now : null),
    payload: toText(run.payload),
    dedupeMs: dedupe === null ? null : dedupeForMs,
    startBy: null,
    waits: schedule !== null && meetOverlap(tx, schedule, run),
  })
  if (id === undefined) throw new Error(`a run of ${target} is there already`)
  openDedupe(tx, target, dedupe, id)
  return { outcome: 'enqueued', run: String(id) }
}

const SAME_BACKFILL = 'select id from belfry_runs where schedule = ? and tick = ? and slot = ?'

function refusal(tx: Tx, run: NewRun, target: string, readyAt: number): EnqueueResult | undefined {
  const { dedupe, schedule, origin, tick, backfill } = run
  const same = dedupe === undefined ? undefined : dedupeOf(tx, target, dedupe)
  if (same !== undefined) return { outcome: 'duplicate', run: String(same) }
  if (origin === 'backfill' && schedule !== undefined) {
    const known = tx.db.get<[number]>(SAME_BACKFILL, schedule, tick ?? null, `b/${backfill}`)
    if (known !== undefined) return { outcome: 'duplicate', run: String(known[0]) }
  }
  const winner = keyWinner(tx, run, readyAt) ?? (schedule === undefined ? undefined : overlapWinner(tx, schedule, run))
  return winner === undefined ? undefined : { outcome: 'busy', run: String(winner) }
}

const SAME_INSTANT = `select id from belfry_runs where key = ? and state = 1 and ready_at = ? and attempt = 0
  order by id limit 1`

/** The run that has the key, when as many as its limit are due or executing, or one is ready at the same instant. */
function keyWinner(tx: Tx, { key, checkKey }: NewRun, readyAt: number): number | undefined {
  if (!checkKey || key === undefined || key === 'unstamped') return undefined
  if (readyAt > tx.now) return tx.db.get<[number]>(SAME_INSTANT, key.name, readyAt)?.[0]
  return engagedCount(tx.db, tx.now, key.name, key.limit) < key.limit ? undefined : firstEngaged(tx, key.name)
}

const COUNT_BEGUN = `select count(*) from (
  select 1 from belfry_runs where key = ? and state < 3 and attempt > 0 limit ?)`
const COUNT_READY = `select count(*) from (
  select 1 from belfry_runs where key = ? and state = 1 and ready_at <= ? and attempt = 0 limit ?)`
const COUNT_WAITING = `select count(*) from (
  select 1 from belfry_runs where key = ? and state = 0 and ready_at <= ? and attempt = 0 limit ?)`

/** How many runs of a key are due or began and have not ended, as far as the limit. */
function engagedCount(db: Connection, now: number, key: string, limit: number): number {
  const begun = db.get<[number]>(COUNT_BEGUN, key, limit)?.[0] ?? 0
  if (begun >= limit) return begun
  const ready = db.get<[number]>(COUNT_READY, key, now, limit)?.[0] ?? 0
  if (begun + ready >= limit) return begun + ready
  return begun + ready + (db.get<[number]>(COUNT_WAITING, key, now, limit)?.[0] ?? 0)
}

const BEGUN = `select id, state from belfry_runs where key = ? and state < 3 and attempt > 0
  order by state = 2 desc, id limit 1`

const DUE_WAITING = `select id from belfry_runs where key = ? and state = 0 and ready_at <= ? and attempt = 0
  order by id limit 1`

/**
 * Whoever executes, or else the oldest that is due, or else one between attempts, or else the oldest that waits for others
 * of its schedule.
 */
function firstEngaged(tx: Tx, key: string): number | undefined {
  const begun = tx.db.get<[number, number]>(BEGUN, key)
  if (begun?.[1] === 2) return begun[0]
  const oldest = Math.min(oldestStanding(tx, key), oldestWaiting(tx, key)?.id ?? Number.POSITIVE_INFINITY)
  if (Number.isFinite(oldest)) return oldest
  return begun?.[0] ?? tx.db.get<[number]>(DUE_WAITING, key, tx.now)?.[0]
}

function overlapWinner(tx: Tx, schedule: string, { overlap }: NewRun): number | undefined {
  if (overlap !== 'skip' && overlap !== 'queue-one') return undefined
  const engaged = engagedRuns(tx, schedule)
  return (overlap === 'skip' ? engaged[0] : engaged.find(({ waitsFor }) => waitsFor === 'overlap'))?.id
}

/** Answers whether the run has to wait for others of its schedule. */
function meetOverlap(tx: Tx, schedule: string, { overlap }: NewRun): boolean {
  if (overlap === undefined || overlap === 'allow') return false
  if (overlap === 'cancel-running') makeWay(tx, schedule)
  return engagedRuns(tx, schedule).length > 0
}

export function isAvailable(db: Connection, now: number, key: string, limit: number): boolean {
  return engagedCount(db, now, key, limit) < limit
}
