/** What is answered besides schedules and runs themselves. */
import { z } from 'zod'
import { json, skipReason, time } from './fields.js'
import { leaseResource } from './holder.js'
import { runResource } from './run.js'
import { scheduleInput } from './schedule.js'

const MAX_LISTED = 1_000

export const enqueued = z
  .strictObject({
    outcome: z.enum(['enqueued', 'duplicate', 'busy']),
    runId: z.string().meta({ description: 'The new run, or the one that it lost to.' }),
    run: z.nullable(runResource).meta({ description: 'As it is now; null where no history is kept.' }),
  })
  .meta({ id: 'EnqueueOutcome' })

export const backfilled = z
  .strictObject({
    enqueued: z.int(),
    duplicates: z.int().meta({ description: 'Ticks that this backfill had run before.' }),
    busy: z.int(),
    runs: z.array(z.string()).meta({ description: `The first ${MAX_LISTED} runs.` }),
  })
  .meta({ id: 'BackfillResult' })

const TICK_STATUSES = [
  'before-creation',
  'ran',
  'failed',
  'cancelled',
  'running',
  'waiting',
  'skipped',
  'upcoming',
  'due',
  'forgotten',
] as const

export const explanation = z
  .strictObject({
    at: time,
    status: z.enum(['unknown-schedule', 'not-a-tick', ...TICK_STATUSES]),
    reason: skipReason.exactOptional(),
    text: z.string(),
    run: runResource.exactOptional(),
  })
  .meta({ id: 'Explanation' })

export const ticks = z
  .strictObject({
    data: z.array(
      z
        .strictObject({
          at: time,
          planned: z.boolean().meta({ description: 'Whether the timeline as it is now has a tick there.' }),
          status: z.enum(TICK_STATUSES),
          reason: skipReason.exactOptional(),
          run: runResource.exactOptional(),
        })
        .meta({ id: 'Tick' }),
    ),
    skips: z
      .array(z.strictObject({ from: time, to: time, count: z.int(), reason: skipReason }))
      .meta({ description: 'Stretches of skipped ticks that touch the range.' }),
    next: z.nullable(time).meta({ description: 'Pass it as `from` to go on; null when that was all.' }),
  })
  .meta({ id: 'Ticks' })

export const preview = z
  .strictObject({
    description: z.string().meta({ description: 'The timeline in words.' }),
    data: z.array(z.strictObject({ at: time, readyAt: time.meta({ description: 'With jitter: when it may start.' }) })),
  })
  .meta({ id: 'Preview' })

const change = z
  .strictObject({
    id: z.string(),
    change: z.enum(['create', 'update', 'remove']),
    before: scheduleInput.exactOptional(),
    after: scheduleInput.exactOptional(),
  })
  .meta({ id: 'ApplyChange' })

export const applied = z
  .strictObject({
    applied: z.boolean().meta({ description: 'False after a dry run.' }),
    changes: z.array(change),
    unchanged: z.int(),
  })
  .meta({ id: 'ApplyResult' })

const counts = {
  taken: z.int().meta({ description: 'Lines that are done with: written, or reported.' }),
  created: z.int(),
  updated: z.int(),
  unchanged: z.int(),
  refused: z.int(),
}

const fieldError = z.strictObject({ pointer: z.string(), message: z.string(), code: z.string().exactOptional() })

export const lineError = z
  .strictObject({
    line: z.int(),
    id: z.string().exactOptional(),
    code: z.string(),
    message: z.string(),
    errors: z.array(fieldError).exactOptional(),
  })
  .meta({ id: 'ImportLineError' })

export const imported = z
  .strictObject({
    ...counts,
    nextLine: z.int().meta({ description: 'The number of the line after the last that was taken.' }),
    errors: z.array(lineError).meta({ description: 'The first thousand.' }),
  })
  .meta({ id: 'ImportResult' })

export const importProgress = z
  .strictObject({ ...counts, nextLine: z.int(), done: z.boolean() })
  .meta({ id: 'ImportProgress' })

export const manyRuns = z
  .strictObject({
    changed: z.array(z.string()).meta({ description: 'The runs that were changed, or asked to cancel.' }),
    refused: z.int().meta({ description: 'Runs that had moved on meanwhile.' }),
    nextCursor: z.nullable(z.string()).meta({ description: 'Pass it as `cursor` to go on.' }),
  })
  .meta({ id: 'ManyRunsResult' })

export const runLog = z
  .strictObject({
    text: z.string(),
    omitted: z.int().meta({ description: 'Characters that were left out of its middle.' }),
    attempt: z.int(),
  })
  .meta({ id: 'RunLog' })

export const jobResource = z
  .strictObject({
    name: z.string(),
    exclusive: z
      .strictObject({
        name: z.string().exactOptional(),
        by: z.union([z.array(z.string()), z.literal('code')]).exactOptional(),
        limit: z.int(),
        whenBusy: z.enum(['skip', 'wait']),
        checkOnEnqueue: z.boolean(),
      })
      .exactOptional()
      .meta({ description: 'How its runs are kept from overlapping.' }),
    instances: z.array(z.string()).meta({ description: 'The live instances that run it.' }),
  })
  .meta({ id: 'Job' })

export const lockResource = z
  .strictObject({ name: z.string(), holders: z.array(leaseResource).meta({ description: 'Nobody: it is free.' }) })
  .meta({ id: 'Lock' })

export const freezeState = z
  .strictObject({ frozen: z.boolean(), at: time.exactOptional(), note: z.string().exactOptional() })
  .meta({ id: 'Freeze' })

const atLeast = z
  .strictObject({
    count: z.int(),
    more: z.boolean().meta({ description: 'Whether there are more than were counted.' }),
  })
  .meta({ id: 'BoundedCount' })

export const stats = z
  .strictObject({
    now: time,
    instances: z.strictObject({ live: z.int(), gone: z.int() }),
    freeze: freezeState,
    due: atLeast.meta({ description: 'Runs that could start now.' }),
    ready: atLeast,
    waiting: atLeast,
    running: atLeast,
  })
  .meta({ id: 'Stats' })

export const doctorReport = z
  .strictObject({
    ok: z.boolean().meta({ description: 'Nothing was found.' }),
    checks: z.array(
      z
        .strictObject({
          name: z.string(),
          about: z.string().meta({ description: 'What was seen.' }),
          findings: z.array(z.strictObject({ what: z.string(), fix: z.string() })),
        })
        .meta({ id: 'Check' }),
    ),
  })
  .meta({ id: 'DoctorReport' })

export const auditEntry = z
  .strictObject({
    id: z.string(),
    at: time,
    caller: z.string(),
    role: z.string(),
    action: z.string().meta({ examples: ['schedule.put'] }),
    target: z.string(),
    detail: json.exactOptional(),
  })
  .meta({ id: 'AuditEntry' })

export type EnqueueOutcome = z.output<typeof enqueued>
export type BackfillResult = z.output<typeof backfilled>
export type Explanation = z.output<typeof explanation>
export type Ticks = z.output<typeof ticks>
export type Preview = z.output<typeof preview>
export type ApplyResult = z.output<typeof applied>
export type ImportResult = z.output<typeof imported>
export type ImportLineError = z.output<typeof lineError>
export type ImportProgress = z.output<typeof importProgress>
export type ManyRunsResult = z.output<typeof manyRuns>
export type JobResource = z.output<typeof jobResource>
export type LockResource = z.output<typeof lockResource>
export type FreezeState = z.output<typeof freezeState>
export type Stats = z.output<typeof stats>
export type RunLog = z.output<typeof runLog>
export type DoctorReport = z.output<typeof doctorReport>
export type AuditEntry = z.output<typeof auditEntry>
