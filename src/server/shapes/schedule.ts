import { z } from 'zod'
import type { RecentRuns } from '../../api/schedules/recent-runs.js'
import { inputOf } from '../../api/schedules/schedule-input-of.js'
import type { ScheduleView } from '../../api/schedules/schedule-view.js'
import { DEFAULTS, LIMITS } from '../../core/defaults.js'
import { BACKLOGS, MISSED_POLICIES, ON_FINISH } from '../../core/policies.js'
import { DST_GAPS, DST_REPEATS } from '../../time/cron/cron.js'
import { MAX_INSTANTS } from '../../time/instants.js'
import { intervalMs } from '../../time/interval.js'
import type { Visible } from '../security/visibility.js'
import {
  cron,
  duration,
  durationOf,
  iso,
  json,
  keep,
  listed,
  localInstant,
  name,
  overlap,
  runState,
  scheduleState,
  time,
  timezone,
} from './fields.js'

const policy = z.enum(MISSED_POLICIES).meta({ id: 'MissedPolicy' })

/** The fields of a schedule that its author writes. */
const FIELDS = {
  cron: cron.meta({
    description: 'A cron expression, a nickname, "@every 1h" or "@at …". One of cron, every and at is needed.',
    examples: ['0 9 * * 1-5'],
  }),
  every: durationOf(intervalMs).meta({
    id: 'IntervalValue',
    description: 'An interval of at least a second, such as "15m".',
    examples: ['15m'],
  }),
  at: z
    .union([localInstant, listed(z.array(localInstant), MAX_INSTANTS)], {
      error: 'it must be an instant or a list of them',
    })
    .meta({ id: 'InstantsValue', description: 'One instant, or a list of them.' }),
  timezone: timezone.meta({ description: 'IANA name, for cron and for instants without an offset. Default UTC.' }),
  dst: z
    .strictObject({
      gap: z.enum(DST_GAPS).meta({ id: 'DstGap' }).exactOptional(),
      repeat: z.enum(DST_REPEATS).meta({ id: 'DstRepeat' }).exactOptional(),
    })
    .meta({ id: 'DstRules', description: 'What happens to times that a clock change skips or repeats.' }),
  startsAt: localInstant,
  endsAt: localInstant,
  job: name('job name').meta({ description: 'The job to run. Either this or `to` is needed.' }),
  to: name('sink name').meta({ description: 'The sink to deliver to.' }),
  toOptions: json.meta({ description: 'Options of this schedule for its sink: topic, headers, URL.' }),
  payload: json.meta({ description: `Any JSON of at most ${LIMITS.payloadBytes / 1_024} KiB.` }),
  overlap: overlap.meta({
    description: `What a tick does while an earlier run is unfinished. Default ${DEFAULTS.schedule.overlap}.`,
  }),
  missed: z
    .union(
      [
        policy,
        z
          .strictObject({
            policy,
            within: duration.exactOptional(),
            max: z.int().min(1).max(LIMITS.missed).exactOptional(),
          })
          .meta({ id: 'MissedRules' }),
      ],
      { error: 'it must be skip, latest or all, or an object with a policy of those' },
    )
    .meta({
      id: 'MissedChoice',
      description: 'What happens to ticks that were due while no instance could record them.',
    }),
  backlog: z
    .enum(BACKLOGS)
    .meta({ id: 'BacklogPolicy' })
    .meta({
      description: `What becomes of ticks that no worker starts in time: \`missed\` decides, or they wait. Default ${DEFAULTS.schedule.backlog}.`,
    }),
  deadline: duration,
  jitter: duration,
  times: z.int().min(1).max(LIMITS.times),
  priority: z.int().min(-LIMITS.priority).max(LIMITS.priority),
  keep,
  onFinish: z.enum(ON_FINISH).meta({ id: 'OnFinish' }),
}

type Fields = typeof FIELDS

type Optional<Shape extends z.ZodRawShape> = { [Field in keyof Shape]: z.ZodExactOptional<Shape[Field]> }
type Nullable<Shape extends z.ZodRawShape> = { [Field in keyof Shape]: z.ZodExactOptional<z.ZodNullable<Shape[Field]>> }

function each(wrap: (field: z.ZodType) => z.ZodType): Record<string, z.ZodType> {
  return Object.fromEntries(Object.entries(FIELDS).map(([key, field]) => [key, wrap(field)]))
}

// optional() accepts the same JSON as exactOptional(), because JSON has no undefined, and is faster for absent fields.
const optional = each((field) => field.optional()) as Optional<Fields>
const nullable = each((field) => field.nullable().optional()) as Nullable<Fields>

const EXAMPLE = { cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', job: 'send-digest', payload: { region: 'eu' } }

export const scheduleInput = z.strictObject(optional).meta({ id: 'ScheduleInput', bodies: [EXAMPLE] })

export const scheduleId = name('schedule id').refine((id) => id !== '.' && id !== '..', {
  error: 'URLs drop the path segments "." and "..": choose another id',
})

export const newSchedule = z.strictObject({ id: scheduleId.exactOptional(), ...optional }).meta({
  id: 'CreateScheduleRequest',
  bodies: [{ id: 'digest/eu', ...EXAMPLE }],
})

/** Absent fields stay as they are; null removes one. */
export const schedulePatch = z
  .strictObject(nullable)
  .meta({ id: 'SchedulePatch', bodies: [{ jitter: '30s', payload: null }] })

/** A line of an export or an import. */
export const scheduleLine = z
  .strictObject({ id: scheduleId, ...optional })
  .meta({ id: 'ScheduleLine', bodies: [{ id: 'digest/eu', ...EXAMPLE }] })

const recent = z
  .strictObject({
    last: z
      .strictObject({ run: z.string(), state: runState, at: time })
      .meta({ id: 'LastRun' })
      .exactOptional()
      .meta({ description: 'The newest run that has ended.' }),
    p95Ms: z.number().exactOptional().meta({ description: 'The 95th percentile of their durations.' }),
  })
  .meta({ id: 'RecentRuns', description: 'From the newest 20 runs in the history.' })

export const scheduleResource = z
  .strictObject({
    id: z.string(),
    version: z.int(),
    state: scheduleState,
    description: z.string().meta({ description: 'The timeline in words.' }),
    next: z.nullable(time).meta({ description: 'The next tick; null while it is paused or when none is left.' }),
    ...optional,
    at: z.array(time).exactOptional(),
    every: z.string().exactOptional(),
    startsAt: time.exactOptional(),
    endsAt: time.exactOptional(),
    payload: json,
    overlap,
    missed: FIELDS.missed,
    priority: z.int(),
    keep,
    onFinish: FIELDS.onFinish,
    createdAt: time,
    updatedAt: time,
    remaining: z.int().exactOptional().meta({ description: 'Ticks left, where `times` limits them.' }),
    pausedAt: time.exactOptional(),
    pauseNote: z.string().exactOptional(),
    finishedAt: time.exactOptional(),
    app: z.string().exactOptional().meta({ description: 'The app whose code declares it.' }),
    key: z.string().exactOptional().meta({ description: 'The exclusive key that its runs hold.' }),
    keyPending: z.literal(true).exactOptional().meta({
      description: 'An instance with the job’s code has yet to compute the exclusive key.',
    }),
    recent: recent.exactOptional(),
  })
  .meta({ id: 'Schedule' })

export type ScheduleFields = z.input<typeof scheduleInput>
export type NewSchedule = z.input<typeof newSchedule>
export type SchedulePatch = z.input<typeof schedulePatch>
export type ScheduleLine = z.input<typeof scheduleLine>
export type ScheduleResource = z.output<typeof scheduleResource>

export function toRecent({ last, p95Ms }: RecentRuns = {}): z.output<typeof recent> {
  return {
    ...(last === undefined ? {} : { last: { ...last, at: iso(last.at) } }),
    ...(p95Ms === undefined ? {} : { p95Ms }),
  }
}

export function toScheduleResource(view: Visible<ScheduleView>): ScheduleResource {
  const { id, version, state, description, next, definition, createdAt, updatedAt } = view
  const { remaining, pausedAt, pauseNote, finishedAt } = view
  const { app, key } = definition
  return {
    ...{ id, version, state, description, next: next === undefined ? null : iso(next) },
    ...inputOf(definition),
    ...('at' in definition.timeline ? { at: definition.timeline.at.map(iso) } : {}),
    createdAt: iso(createdAt),
    updatedAt: iso(updatedAt),
    ...(remaining === undefined ? {} : { remaining }),
    ...(pausedAt === undefined ? {} : { pausedAt: iso(pausedAt) }),
    ...(pauseNote === undefined ? {} : { pauseNote }),
    ...(finishedAt === undefined ? {} : { finishedAt: iso(finishedAt) }),
    ...(app === undefined ? {} : { app }),
    ...(key === undefined ? {} : key === 'unstamped' ? { keyPending: true } : { key: key.name }),
  } as ScheduleResource
}
