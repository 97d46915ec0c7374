/** A schedule's unfinished runs: read as one text, which is what a plan is compared with before it is written. */
import type { Unfinished } from '../../core/plan.js'
import { stateOf } from './run-row.js'

/** SQL for that text, by expressions for the schedule and the time; null when it has none. */
export function unfinishedRuns(schedule: string, now: string): string {
  return `(select json_agg(json_build_array(${stateOf('r')}, r.attempt > 0, case when r.origin = 0 then r.tick end)
    order by r.id) from belfry.runs r where r.schedule = ${schedule} and r.state < 3
    and (r.waits_for = 2 or r.engaged or r.ready_at <= ${now}))`
}

const STATES = ['waiting', 'ready', 'running'] as const

export function toUnfinished(text: string | null): Unfinished[] {
  if (text === null) return []
  return (JSON.parse(text) as [number, boolean, number | null][]).map(([state, started, tick]) => ({
    ...{ state: STATES[state] ?? 'ready', started },
    ...(tick === null ? {} : { tick }),
  }))
}
