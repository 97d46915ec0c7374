import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { afterPrefix } from '../../../core/names/text-order.js'
import type { Run } from '../../../core/runs/run.js'
import { numberAfter } from '../../../core/runs/run-id.js'
import type { Page, RunQuery } from '../../../core/store.js'
import type { SqliteFile } from '../connection/file.js'
import { type Given, jsonRowsOf, type Nothing, row, statement, withConditions } from '../connection/statements.js'
import type { Snapshot } from '../connection/tx.js'
import source from './list.sql'
import { SHOWN_COLUMNS, type ShownRow, toRun } from './run-codec.js'
import { findRun } from './transitions.js'

export function getRun(snapshot: Snapshot, id: string): Run | undefined {
  const run = findRun(snapshot, id)
  return run === undefined ? undefined : toRun(run)
}

type Window = { before: number; from: number; limit: number }

const runBounds = row<Nothing, { oldest: number; newest: number }>(source, 'runBounds')
const listWindow = statement(source, 'listRuns')

/** How many runs one read may pass over: a search through the whole history must not block the event loop. */
const WINDOW = 5_000
/** After so many windows the schedule's runs are rare among the others: the rest is read by the schedule's index. */
const WINDOWS = 5

/** Newest first, in windows of ids, each of which is a short read. */
export async function listRuns(file: SqliteFile, query: RunQuery): Promise<Page<Run>> {
  checkPageLimit(query.limit)
  const { conditions, given, byIndex } = filters(query)
  const select = jsonRowsOf<Window & Given, ShownRow>(withConditions(listWindow, conditions), SHOWN_COLUMNS)
  const found: ShownRow[] = []
  const { oldest, newest } = await file.read((snapshot) => runBounds(snapshot, {}) ?? { oldest: 1, newest: 0 })
  const most = byIndex ? Number.POSITIVE_INFINITY : (query.look ?? Number.POSITIVE_INFINITY)
  let before = Math.min(query.after === undefined ? newest + 1 : numberAfter(query.after), newest + 1)
  let windows = byIndex && query.tick !== undefined ? WINDOWS : 0
  for (; found.length <= query.limit && before > oldest; windows += 1) {
    if (windows * WINDOW >= most) return { items: found.map(toRun), next: String(before) }
    const from = byIndex && windows >= WINDOWS ? oldest : Math.max(before - WINDOW, oldest)
    const window = { ...given, before, from, limit: query.limit + 1 - found.length }
    found.push(...(await file.read((snapshot) => select(snapshot, window))))
    before = from
    await file.breathe()
  }
  const items = found.slice(0, query.limit).map(toRun)
  const last = items.at(-1)
  return found.length > query.limit && last !== undefined ? { items, next: last.id } : { items }
}

/** A run's owner is its schedule; without one, its job or sink. */
const OWNED_BELOW = `((schedule >= :prefix and schedule < :beyond) or (schedule is null and (
  (target >= 'job:' || :prefix and target < 'job:' || :beyond) or
  (target >= 'sink:' || :prefix and target < 'sink:' || :beyond))))`

/** The conditions of a query, their values, and whether an index finds all that they name. */
function filters({ prefix, schedule, tick, job, sink, key, states, waitsFor }: RunQuery) {
  const conditions: string[] = []
  if (prefix !== undefined) conditions.push(OWNED_BELOW)
  if (schedule !== undefined) conditions.push('schedule = :schedule')
  if (tick !== undefined) conditions.push('tick = :tick')
  if (job !== undefined) conditions.push('target = :job')
  if (sink !== undefined) conditions.push('target = :sink')
  if (key !== undefined) conditions.push('key = :key')
  if (states !== undefined) conditions.push('state in (select value from json_each(:states))')
  if (waitsFor !== undefined) conditions.push('waits_for = :waitsFor')
  return {
    conditions,
    given: {
      ...{ schedule: schedule ?? null, tick: tick ?? null, key: key ?? null, waitsFor: waitsFor ?? null },
      ...{ prefix: prefix ?? null, beyond: afterPrefix(prefix ?? '') },
      ...{ job: `job:${job}`, sink: `sink:${sink}`, states: JSON.stringify(states ?? []) },
    },
    byIndex: schedule !== undefined && (tick !== undefined || conditions.length === 1),
  }
}
