import type { ParsedTimeline } from '../../time/timeline.js'
import type { Json } from '../checks/json.js'
import type { Backlog, Missed, OnFinish, Overlap } from '../policies.js'
import type { RunKey } from '../runs/key.js'
import type { Keep, Target } from '../runs/run.js'
import type { Plannable } from './plan.js'

/** The choices of a schedule's author, parsed and checked. */
export interface ScheduleDefinition {
  readonly timeline: ParsedTimeline
  readonly startsAt?: number
  readonly endsAt?: number
  readonly target: Target
  readonly payload: Json
  /** The exclusive key that its runs must hold; `unstamped` until an instance that has the job's code computes it. */
  readonly key?: RunKey | 'unstamped'
  readonly overlap: Overlap
  readonly missed: Missed
  /** Default `drop`. */
  readonly backlog?: Backlog
  readonly deadlineMs?: number
  readonly jitterMs: number
  /** How many ticks may be recorded in all. */
  readonly times?: number
  readonly priority: number
  readonly keep: Keep
  readonly onFinish: OnFinish
  /** The app whose code declares the schedule. A declared schedule is not removed when it finishes. */
  readonly app?: string
}

export interface Schedule {
  readonly id: string
  /** From a counter of the store that only grows, so a recreated schedule has a new version. */
  readonly version: number
  readonly definition: ScheduleDefinition
  /** The instant from which intervals are counted. */
  readonly anchor: number
  /** Every tick at or before this instant has been accounted for. */
  readonly cursor: number
  /** How many ticks may still be recorded, when the definition limits them. */
  readonly remaining?: number
  /** The next tick that is not recorded yet; absent when there is none. */
  readonly nextAt?: number
  /** When to plan the schedule again; absent while it is paused or finished. */
  readonly dueAt?: number
  readonly pausedAt?: number
  readonly pauseNote?: string
  readonly createdAt: number
  readonly updatedAt: number
  readonly finishedAt?: number
}

export const SCHEDULE_STATES = ['active', 'paused', 'finished'] as const
export type ScheduleState = (typeof SCHEDULE_STATES)[number]

export function scheduleState(schedule: Schedule): ScheduleState {
  if (schedule.finishedAt !== undefined) return 'finished'
  return schedule.pausedAt === undefined ? 'active' : 'paused'
}

/** What a plan is made from: a schedule, of which the payload does not matter. */
export interface PlannedSchedule extends Pick<Schedule, 'id' | 'anchor' | 'cursor' | 'remaining' | 'pausedAt'> {
  readonly definition: Omit<ScheduleDefinition, 'payload'>
}

export function plannable({ id, definition, anchor, cursor, remaining, pausedAt }: PlannedSchedule): Plannable {
  const { timeline, startsAt, endsAt, target, key, overlap, missed, backlog, deadlineMs, jitterMs } = definition
  // Events wait for a sink that is unreachable, and runs wait for a key if their author says so.
  const mayWait = 'sink' in target || (key !== 'unstamped' && key?.whenBusy === 'wait')
  return {
    id,
    timeline,
    anchor,
    cursor,
    overlap,
    missed,
    jitterMs,
    ...(backlog === 'keep' ? { backlog } : {}),
    ...(mayWait ? { mayWait } : {}),
    ...(key === 'unstamped' ? { unstamped: true } : {}),
    ...(startsAt === undefined ? {} : { startsAt }),
    ...(endsAt === undefined ? {} : { endsAt }),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(remaining === undefined ? {} : { remaining }),
    ...(pausedAt === undefined ? {} : { pausedAt }),
  }
}
