import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { afterPrefix, textOrder } from '../../../core/names/text-order.js'
import type { Schedule, ScheduleState } from '../../../core/schedules/schedule.js'
import type { Page, ScheduleQuery } from '../../../core/store.js'
import type { SqliteFile } from '../connection/file.js'
import { type Given, row, rowsOf, statement, withConditions } from '../connection/statements.js'
import type { Snapshot } from '../connection/tx.js'
import source from './list.sql'
import { type ScheduleRow, toSchedule } from './schedule-codec.js'

const selectSchedule = row<{ id: string }, ScheduleRow>(source, 'getSchedule')

export function getSchedule(snapshot: Snapshot, id: string): Schedule | undefined {
  const row = selectSchedule(snapshot, { id })
  return row === undefined ? undefined : toSchedule(row)
}

type Window = { from: string; after: string; upTo: string; limit: number }
type End = { from: string; after: string; beyond: string; window: number }

const listWindow = statement(source, 'listSchedules')
const windowEnd = row<End, { id: string }>(source, 'windowEnd')

/** How many schedules one read may pass over: a search for the few among many must not block the event loop. */
const WINDOW = 2_000

/** In order of id, in windows of ids, each of which is a short read. */
export async function listSchedules(file: SqliteFile, query: ScheduleQuery): Promise<Page<Schedule>> {
  const { prefix = '', limit, look = Number.POSITIVE_INFINITY } = query
  checkPageLimit(limit)
  const { conditions, given } = filters(query)
  const select = rowsOf<Window & Given, ScheduleRow>(withConditions(listWindow, conditions))
  const items: Schedule[] = []
  const beyond = afterPrefix(prefix)
  let after = query.after ?? ''
  for (let looked = 0; items.length <= limit && textOrder(after, beyond) < 0; looked += WINDOW) {
    if (looked >= look) return { items, next: after }
    const bounds = { from: textOrder(after, prefix) < 0 ? prefix : after, after }
    const [upTo, rows] = await file.read((snapshot) => {
      const end =
        conditions.length === 0 ? beyond : (windowEnd(snapshot, { ...bounds, beyond, window: WINDOW })?.id ?? beyond)
      const missing = limit + 1 - items.length
      return [end, select(snapshot, { ...given, ...bounds, upTo: end, limit: missing })] as const
    })
    items.push(...rows.map((row) => toSchedule(row)))
    after = upTo
    await file.breathe()
  }
  return items.length > limit ? { items: items.slice(0, limit), next: items[limit - 1]?.id ?? '' } : { items }
}

const STATES: Readonly<Record<ScheduleState, string>> = {
  active: 'finished_at is null and paused_at is null',
  paused: 'finished_at is null and paused_at is not null',
  finished: 'finished_at is not null',
}

function filters({ state, job, sink, app, unstamped }: ScheduleQuery) {
  const conditions: string[] = []
  if (state !== undefined) conditions.push(STATES[state])
  if (job !== undefined) conditions.push('target = :job')
  if (sink !== undefined) conditions.push('target = :sink')
  if (app !== undefined) conditions.push('app = :app')
  if (unstamped) conditions.push('unstamped = 1')
  return { conditions, given: { job: `job:${job}`, sink: `sink:${sink}`, app: app ?? null } }
}
