/** Shapes of single fields. The library's own parsers decide what is valid. */
import { z } from 'zod'
import type { Json } from '../../core/checks/json.js'
import { BelfryError } from '../../core/errors.js'
import { checkName } from '../../core/names/names.js'
import { OVERLAPS, SKIP_REASONS, WHEN_BUSY } from '../../core/policies.js'
import { KEEPS, RUN_STATES } from '../../core/runs/run.js'
import { SCHEDULE_STATES } from '../../core/schedules/schedule.js'
import { isAt } from '../../time/cron/nicknames.js'
import { durationMs } from '../../time/duration.js'
import { instantMs } from '../../time/instant.js'
import { parseTimeline } from '../../time/timeline.js'
import { zone } from '../../time/zone.js'

/** Adds one of Belfry's own parsers to a zod shape. The field error carries the message and code of the parser's error. */
export function parsed<Shape extends z.ZodType>(shape: Shape, parse: (value: z.output<Shape>) => unknown): Shape {
  return shape.superRefine((value, context) => {
    try {
      parse(value)
    } catch (error) {
      if (!(error instanceof BelfryError)) throw error
      context.addIssue({ code: 'custom', message: error.message, params: { code: error.code } })
    }
  })
}

/**
 * A list that is checked item by item up to the first invalid one: zod alone would check all of them, and report each.
 * Only the first invalid item gets a field error.
 */
export function listed<List extends z.ZodArray>(list: List, most: number) {
  const item = list.element as z.ZodType
  return z.preprocess((given: unknown, context) => {
    if (!Array.isArray(given)) return given
    if (given.length > most) return refuse(context, [], `it has ${given.length} items: at most ${most} are allowed`)
    for (const [at, value] of given.entries()) {
      const [issue] = item.safeParse(value).error?.issues ?? []
      if (issue !== undefined) return refuse(context, [at, ...issue.path], issue.message)
    }
    return given
  }, list)
}

function refuse(context: z.RefinementCtx, path: PropertyKey[], message: string): never {
  context.addIssue({ code: 'custom', path, message })
  return z.NEVER
}

/** Any JSON; the library checks its size and depth. */
export const json: z.ZodType<Json> = z.any()

const TEXT_OR_NUMBER = { error: 'it must be text or a number' }

export const duration = parsed(z.union([z.string(), z.number()], TEXT_OR_NUMBER), durationMs).meta({
  id: 'Duration',
  description: 'As text ("15m", "1h30m", "PT15M") or in milliseconds.',
  examples: ['15m'],
})

/** Local times are valid too, because another field may name their zone. UTC is only used to check the text. */
export const instant = parsed(z.union([z.string(), z.number()], TEXT_OR_NUMBER), (value) =>
  instantMs(value, zone('UTC')),
).meta({
  id: 'Instant',
  description: 'ISO 8601 text with an offset, or epoch milliseconds.',
  examples: ['2026-03-01T09:00:00Z'],
})

/** An instant in answers: ISO 8601 in UTC with milliseconds. */
export const time = z.string().meta({
  id: 'Time',
  format: 'date-time',
  description: 'UTC, with milliseconds.',
  examples: ['2026-03-01T09:00:00.000Z'],
})

export const cron = parsed(z.string(), (text) =>
  parseTimeline(isAt(text) ? { cron: text, timezone: 'UTC' } : { cron: text }),
)

export const timezone = parsed(z.string(), zone)

export function name(what: string) {
  return parsed(z.string(), (text) => checkName(text, what))
}

const CONTROLS = /[\p{Cc}\p{Cs}]/u

/** The text of a filter or an id. */
export const text = z.string().refine((value) => !CONTROLS.test(value), { error: 'it holds control characters' })

/** A comment by a person, of one or more lines. */
export const note = z
  .string()
  .max(2_000)
  .refine((value) => !value.includes('\u0000'), { error: 'it holds the character U+0000' })

export const overlap = z.enum(OVERLAPS)
export const keep = z.enum(KEEPS)
export const skipReason = z.enum(SKIP_REASONS)
export const runState = z.enum(RUN_STATES)
export const scheduleState = z.enum(SCHEDULE_STATES)
export const whenBusy = z.enum(WHEN_BUSY)

export function iso(instant: number | Date): string {
  return new Date(instant).toISOString()
}
