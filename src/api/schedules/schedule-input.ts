import { toJson } from '../../core/checks/json.js'
import { checkOptions } from '../../core/checks/known-options.js'
import { DEFAULTS, LIMITS } from '../../core/defaults.js'
import { failureAt, quote } from '../../core/errors.js'
import { checkName } from '../../core/names/names.js'
import {
  BACKLOGS,
  type Backlog,
  DEFAULT_MISSED,
  MISSED_POLICIES,
  type Missed,
  type MissedPolicy,
  ON_FINISH,
  type OnFinish,
  OVERLAPS,
  type Overlap,
} from '../../core/policies.js'
import type { Keep, Target } from '../../core/runs/run.js'
import type { ScheduleDefinition } from '../../core/schedules/schedule.js'
import type { DstRule } from '../../time/cron/cron.js'
import { type Duration, durationMs } from '../../time/duration.js'
import { type Instant, instantMs } from '../../time/instant.js'
import { parseTimeline, type TimelineSpec } from '../../time/timeline.js'
import { zone } from '../../time/zone.js'
import { checkKeep } from '../jobs/job-options.js'
import { located } from '../located.js'

/** When a schedule ticks, by a cron expression, a nickname, `@every 1h` or `@at …`. */
export interface CronTimeline {
  readonly cron: string
  /** IANA name, also for instants without an offset. Default UTC. */
  readonly timezone?: string
  readonly dst?: DstRule
  readonly every?: never
  readonly at?: never
}

/** A schedule that ticks at an interval. */
export interface IntervalTimeline {
  readonly every: Duration
  readonly cron?: never
  readonly at?: never
  readonly timezone?: never
  readonly dst?: never
}

/** A schedule that ticks at one instant, or at a list of them. */
export interface InstantsTimeline {
  readonly at: Instant | readonly Instant[]
  /** IANA name, for instants without an offset. Default UTC. */
  readonly timezone?: string
  readonly cron?: never
  readonly every?: never
  readonly dst?: never
}

/** A schedule that runs a job. Its payload is of the job's type. */
export interface JobTarget<Input = unknown> {
  /** The job to run, as `belfry.job()` returned it, or its name. A bare function is no job: define one with it first. */
  readonly job: string | JobLike<Input>
  readonly to?: never
  readonly toOptions?: never
}

/** What `belfry.job()` returns, as far as a schedule needs it. */
export interface JobLike<Input> {
  readonly name: string
  readonly '~input'?: Input
  readonly apply?: never
}

/** A schedule that delivers to a sink. */
export interface SinkTarget {
  readonly to: string
  /** Options of this schedule for its sink: topic, headers, URL. */
  readonly toOptions?: unknown
  readonly payload?: unknown
  readonly job?: never
}

/** Required unless the job also takes no payload. */
export type PayloadOf<Input> = undefined extends Input ? { readonly payload?: Input } : { readonly payload: Input }

/** What a schedule may say besides when it ticks and what it runs. */
export interface ScheduleOptions {
  readonly startsAt?: Instant
  readonly endsAt?: Instant
  /** What happens to a tick while an earlier run of the schedule is unfinished. Default allow. */
  readonly overlap?: Overlap
  /** What happens to ticks that were due while no instance could record them. Default latest. */
  readonly missed?: MissedPolicy | MissedOptions
  /** `keep` ticks that no worker has started in time, instead of treating them as `missed` says. Default drop. */
  readonly backlog?: Backlog
  /** How late a tick may start. Default: no limit. */
  readonly deadline?: Duration
  /** Spreads starts over this long after the tick. */
  readonly jitter?: Duration
  /** How many ticks to fire in all. Default: no limit. */
  readonly times?: number
  /** Higher starts first. Default 0. */
  readonly priority?: number
  readonly keep?: Keep
  /** When the schedule has no tick left, `remove` it with its history (default), or `keep` it. */
  readonly onFinish?: OnFinish
}

/** A schedule as its author writes it: exactly one of cron, every and at; exactly one of job and to. */
export type ScheduleInput<Input = unknown> = ScheduleOptions &
  (CronTimeline | IntervalTimeline | InstantsTimeline) &
  ((JobTarget<Input> & PayloadOf<NoInfer<Input>>) | SinkTarget)

/** The same fields for schedules that are data, such as those of a file: which of them are given is checked at run time. */
export interface ScheduleFields extends ScheduleOptions {
  readonly cron?: string
  readonly every?: Duration
  readonly at?: Instant | readonly Instant[]
  readonly timezone?: string
  readonly dst?: DstRule
  readonly job?: string | JobLike<unknown>
  readonly to?: string
  readonly toOptions?: unknown
  readonly payload?: unknown
}

export interface MissedOptions {
  readonly policy: MissedPolicy
  /** Only ticks at most this old are recorded. */
  readonly within?: Duration
  /** With `all`: the most ticks that are recorded, which are the newest. Default 1,000. */
  readonly max?: number
}

const TIMELINES = ['cron', 'every', 'at'] as const
const SCHEDULE = DEFAULTS.schedule
const KNOWN = [
  ...['cron', 'every', 'at', 'timezone', 'dst', 'startsAt', 'endsAt', 'job', 'to', 'toOptions', 'payload', 'overlap'],
  ...['missed', 'backlog', 'deadline', 'jitter', 'times', 'priority', 'keep', 'onFinish'],
]

/** Checks a schedule's input and converts it to a definition, without the exclusive key, which needs the job. */
export function parseSchedule(id: string, input: ScheduleFields, graceMs: number, app?: string): ScheduleDefinition {
  checkName(id, 'schedule id')
  const where = `schedule "${id}"`
  checkOptions(input, KNOWN, where)
  const timeline = located(where, () => parseTimeline(timelineSpec(id, input)))
  const { startsAt, endsAt } = located(where, () => parseBounds(id, input))
  const { jitterMs, deadlineMs } = located(where, () => parseTiming(input))
  // An absent field has a default; null is refused as a wrong value.
  const {
    overlap = SCHEDULE.overlap,
    missed = SCHEDULE.missed.policy,
    backlog = SCHEDULE.backlog,
    priority = SCHEDULE.priority,
  } = input
  const { keep = SCHEDULE.keep, onFinish = SCHEDULE.onFinish } = input
  return {
    timeline,
    ...(startsAt === undefined ? {} : { startsAt }),
    ...(endsAt === undefined ? {} : { endsAt }),
    target: parseTarget(id, input),
    payload: toJson(input.payload ?? null, `payload of schedule "${id}"`),
    overlap: oneOf(id, 'overlap', overlap, OVERLAPS),
    missed: located(where, () => parseMissed(id, missed, graceMs)),
    ...(oneOf(id, 'backlog', backlog, BACKLOGS) === 'keep' ? { backlog } : {}),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    jitterMs,
    ...(input.times === undefined ? {} : { times: wholeNumber(id, 'times', input.times, 1, LIMITS.times) }),
    priority: wholeNumber(id, 'priority', priority, -LIMITS.priority, LIMITS.priority),
    keep: checkKeep(keep, where),
    onFinish: oneOf(id, 'onFinish', onFinish, ON_FINISH),
    ...(app === undefined ? {} : { app }),
  }
}

function timelineSpec(id: string, input: ScheduleFields): TimelineSpec {
  const { cron, every, at, timezone, dst } = input
  const given = TIMELINES.filter((kind) => input[kind] !== undefined)
  if (given.length === 0) throw invalid(id, 'give one of cron, every or at')
  if (given.length > 1) throw invalid(id, `give one of cron, every and at, not ${given.join(' and ')}`)
  if (every !== undefined && timezone !== undefined)
    throw invalid(id, 'timezone does not apply to every: an interval is the same in every zone', 'timezone')
  if (cron === undefined && dst !== undefined) throw invalid(id, 'dst applies to cron only', 'dst')
  if (every !== undefined) return { every }
  const place = timezone === undefined ? {} : { timezone }
  if (at !== undefined) return { at, ...place }
  return { cron: cron as string, ...place, ...(dst === undefined ? {} : { dst }) }
}

function parseBounds(id: string, { startsAt, endsAt, timezone }: ScheduleFields) {
  const local = timezone === undefined ? undefined : zone(timezone)
  const first = startsAt === undefined ? undefined : instantMs(startsAt, local)
  const last = endsAt === undefined ? undefined : instantMs(endsAt, local)
  if (first !== undefined && last !== undefined && last < first)
    throw invalid(id, 'endsAt lies before startsAt', 'endsAt')
  return { startsAt: first, endsAt: last }
}

function parseTarget(id: string, { job, to, toOptions }: ScheduleFields): Target {
  if ((job === undefined) === (to === undefined)) {
    throw invalid(
      id,
      job === undefined ? 'say what to do: give a job, or a sink with `to`' : 'give a job or a sink, not both',
    )
  }
  if (typeof job === 'function') {
    throw invalid(
      id,
      `job is a function; define it first, const job = belfry.job('name', { run }), and give that job`,
      'job',
    )
  }
  if (job !== undefined) {
    if (toOptions !== undefined)
      throw invalid(id, 'toOptions belong to a sink, and this schedule runs a job', 'toOptions')
    return { job: checkName(typeof job === 'string' ? job : job?.name, `job name of schedule "${id}"`) }
  }
  const sink = checkName(to, `sink name of schedule "${id}"`)
  return toOptions === undefined ? { sink } : { sink, options: toJson(toOptions, `toOptions of schedule "${id}"`) }
}

function parseMissed(id: string, given: MissedPolicy | MissedOptions, graceMs: number): Missed {
  if (typeof given !== 'string') checkOptions(given, ['policy', 'within', 'max'], `schedule "${id}": missed`)
  const { policy, within, max }: MissedOptions = typeof given === 'string' ? { policy: given } : given
  oneOf(id, 'missed.policy', policy, MISSED_POLICIES)
  if (policy === 'skip' && within !== undefined)
    throw invalid(id, 'missed.within says nothing under policy skip: remove it', 'missed.within')
  if (policy !== 'all' && max !== undefined)
    throw invalid(id, `missed.max says nothing under policy ${policy}: remove it`, 'missed.max')
  return {
    policy,
    max: max === undefined ? DEFAULT_MISSED.max : wholeNumber(id, 'missed.max', max, 1, LIMITS.missed),
    graceMs,
    ...(within === undefined ? {} : { withinMs: durationMs(within) }),
  }
}

function parseTiming({ deadline, jitter }: ScheduleFields) {
  return {
    jitterMs: jitter === undefined ? 0 : durationMs(jitter),
    deadlineMs: deadline === undefined ? undefined : durationMs(deadline),
  }
}

function oneOf<T extends string>(id: string, option: string, value: T, allowed: readonly T[]): T {
  if (allowed.includes(value)) return value
  throw invalid(id, `${option} is ${quote(value)}; allowed are ${allowed.join(', ')}`, option)
}

function wholeNumber(id: string, option: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw invalid(id, `${option} is ${quote(value)}; it must be a whole number from ${min} to ${max}`, option)
}

/** `option` is the field that is wrong, as `missed.max`; the whole schedule without one. */
function invalid(id: string, problem: string, option?: string) {
  return failureAt(option?.split('.') ?? [], 'OPTION_INVALID', `schedule "${id}": ${problem}`)
}
