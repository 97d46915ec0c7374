/** Shapes of answers about schedules: ticks, previews, backfills, applies and imports. */
import { z } from 'zod'
import { skipReason, time } from './fields.js'
import { fieldError } from './problem.js'
import { runResource } from './run.js'
import { scheduleInput } from './schedule.js'

const MAX_LISTED = 1_000

export const backfilled = z
  .strictObject({
    enqueued: z.int(),
    duplicates: z.int().meta({ description: 'Ticks that this backfill has enqueued before.' }),
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
  'paused',
  'finished',
  'forgotten',
] as const

export const explanation = z
  .strictObject({
    at: time,
    status: z.enum(['unknown-schedule', 'not-a-tick', ...TICK_STATUSES]).meta({ id: 'ExplanationStatus' }),
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
          planned: z.boolean().meta({ description: 'Whether the current timeline has a tick at this instant.' }),
          status: z.enum(TICK_STATUSES).meta({ id: 'TickStatus' }),
          reason: skipReason.exactOptional(),
          run: runResource.exactOptional(),
        })
        .meta({ id: 'Tick' }),
    ),
    skips: z
      .array(z.strictObject({ from: time, to: time, count: z.int(), reason: skipReason }).meta({ id: 'SkippedRange' }))
      .meta({ description: 'Ranges of skipped ticks that overlap the queried one.' }),
    next: z.nullable(time).meta({ description: 'Pass it as `from` for the next page; null on the last page.' }),
  })
  .meta({ id: 'TickList' })

export const preview = z
  .strictObject({
    description: z.string().meta({ description: 'The timeline in words.' }),
    data: z.array(
      z
        .strictObject({
          at: time,
          readyAt: time.meta({ description: 'The tick plus its jitter: when the run may start.' }),
        })
        .meta({ id: 'PreviewedTick' }),
    ),
  })
  .meta({ id: 'Preview' })

const change = z
  .strictObject({
    id: z.string(),
    change: z.enum(['create', 'update', 'remove']).meta({ id: 'ApplyChangeKind' }),
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
  taken: z.int().meta({ description: 'Lines that were written or reported.' }),
  created: z.int(),
  updated: z.int(),
  unchanged: z.int(),
  refused: z.int(),
}

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
    nextLine: z.int().meta({ description: 'The number of the line after the last one taken.' }),
    errors: z.array(lineError).meta({ description: 'The first 1,000.' }),
  })
  .meta({ id: 'ImportResult' })

export const importProgress = z
  .strictObject({ ...counts, nextLine: z.int(), done: z.boolean() })
  .meta({ id: 'ImportProgress' })

export type BackfillResult = z.output<typeof backfilled>
export type Explanation = z.output<typeof explanation>
export type Ticks = z.output<typeof ticks>
export type Preview = z.output<typeof preview>
export type ApplyResult = z.output<typeof applied>
export type ImportResult = z.output<typeof imported>
export type ImportLineError = z.output<typeof lineError>
export type ImportProgress = z.output<typeof importProgress>
