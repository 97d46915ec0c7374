/** Shapes of single fields. The library's own parsers decide what is valid. */
import { z } from 'zod'
import type { Json } from '../../core/checks/json.js'
import { LIMITS } from '../../core/defaults.js'
import { BelfryError, failure, quote } from '../../core/errors.js'
import { checkName } from '../../core/names/names.js'
import { OVERLAPS, SKIP_REASONS, WHEN_BUSY } from '../../core/policies.js'
import { KEEPS, RUN_STATES } from '../../core/runs/run.js'
import { SCHEDULE_STATES } from '../../core/schedules/schedule.js'
import { isAt } from '../../time/cron/nicknames.js'
import { durationMs } from '../../time/duration.js'
import { instantMs } from '../../time/instant.js'
import { parseTimeline } from '../../time/timeline.js'
import { type Zone, zone } from '../../time/zone.js'

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
export function listed<List extends z.ZodArray>(list: List, most: number): Preprocessed<List> {
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

/** What `z.preprocess` returns, by names that all versions of zod 4 have: the type stands in the declarations of the package. */
type Preprocessed<Schema extends z.core.SomeType> = z.ZodPipe<z.core.$ZodTransform<unknown, unknown>, Schema>

function refuse(context: z.RefinementCtx, path: PropertyKey[], message: string): never {
  context.addIssue({ code: 'custom', path, message })
  return z.NEVER
}

/** Any JSON; the library checks its size and depth. */
export const json: z.ZodType<Json> = z.any()

const TEXT_OR_NUMBER = { error: 'it must be text or a number' }

/** A number below this was probably meant as seconds. */
const SECONDS_SUSPECTED = 1_000

/** The milliseconds of a duration. A number that looks like seconds is refused: text says its unit. */
export function plainDurationMs(value: string | number): number {
  if (typeof value === 'string' || value <= 0 || value >= SECONDS_SUSPECTED) return durationMs(value)
  throw failure(
    'DURATION_OUT_OF_RANGE',
    `duration ${value} looks like seconds: numbers are milliseconds; write "${value}s", or "${value}ms"`,
  )
}

/** A duration that `parse` checks further. */
export function durationOf(parse: (value: string | number) => unknown) {
  return parsed(z.union([z.string(), z.number()], TEXT_OR_NUMBER), (value) => {
    plainDurationMs(value)
    parse(value)
  })
}

export const duration = durationOf(durationMs).meta({
  id: 'DurationValue',
  description:
    'As text ("15m", "1h30m", "PT15M") or in milliseconds, from 1,000 on: a smaller number looks like seconds.',
  examples: ['15m'],
})

const DIGITS = /^\s*[+-]?[\d.]+\s*$/

/** The library reads text of digits as unix seconds, which would be easy to confuse with milliseconds in a request. */
export function refuseDigits(text: string): void {
  if (!DIGITS.test(text)) return
  throw failure('INSTANT_SYNTAX', `instant ${quote(text)} is not ISO 8601 text, such as "2026-03-01T09:00:00Z"`)
}

function instantOf(local?: Zone) {
  return parsed(z.union([z.string(), z.number()], TEXT_OR_NUMBER), (value) => {
    if (typeof value === 'string') refuseDigits(value)
    instantMs(value, local)
  })
}

export const instant = instantOf().meta({
  id: 'InstantValue',
  description: 'ISO 8601 text with an offset, or epoch milliseconds.',
  examples: ['2026-03-01T09:00:00Z'],
})

/** An instant of a schedule, whose `timezone` applies to text without an offset. UTC is only used to check the text. */
export const localInstant = instantOf(zone('UTC')).meta({
  id: 'LocalInstantValue',
  description: 'ISO 8601 text, or epoch milliseconds. Text without an offset is a local time of `timezone`.',
  examples: ['2026-03-01T09:00:00Z', '2026-03-01T09:00'],
})

/** An instant in a query, where a number arrives as digits. */
export const instantParameter: Preprocessed<typeof instant> = z
  .preprocess((given) => (typeof given === 'string' && /^-?\d{1,16}$/.test(given) ? Number(given) : given), instant)
  .meta({ description: 'ISO 8601 text with an offset, or epoch milliseconds.' })

/** `true` or `false` in a query. */
export const flag: Preprocessed<z.ZodBoolean> = z.preprocess(
  (given) => (given === 'true' ? true : given === 'false' ? false : given),
  z.boolean({ error: 'it must be true or false' }),
)

/** A whole number in a query, in plain digits. */
export function digits(least: number, most: number): Preprocessed<z.ZodInt> {
  const error = `it must be a whole number from ${least} to ${most}, in digits`
  const read = (given: unknown) => {
    const value = typeof given === 'string' && /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN
    return Number.isSafeInteger(value) ? value : Number.NaN
  }
  return z.preprocess(read, z.int({ error }).min(least, { error }).max(most, { error }))
}

/** An instant in answers: ISO 8601 in UTC with milliseconds. */
export const time = z.string().meta({
  format: 'date-time',
  description: 'UTC, with milliseconds.',
  examples: ['2026-03-01T09:00:00.000Z'],
})

export const cron = parsed(z.string(), (text) =>
  parseTimeline(isAt(text) ? { cron: text, timezone: 'UTC' } : { cron: text }),
)

export const timezone = parsed(z.string(), zone)

/** What `checkName` accepts, as a pattern: no control characters, and no white space at either end. */
export const NAME_PATTERN = '^[^\\x00-\\x20\\x7f-\\xa0]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\x00-\\x20\\x7f-\\xa0])?$'

export function name(what: string) {
  return parsed(z.string(), (text) => checkName(text, what)).meta({
    ...{ minLength: 1, maxLength: LIMITS.nameLength, pattern: NAME_PATTERN },
  })
}

const CONTROLS = /[\p{Cc}\p{Cs}]/u

/** The text of a filter or an id. */
export const text = z
  .string()
  .refine((value) => !CONTROLS.test(value), { error: 'it holds control characters' })
  .meta({ pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$' })

/** A comment by a person, of one or more lines. */
export const note = z
  .string()
  .max(2_000)
  .refine((value) => !value.includes('\u0000'), { error: 'it holds the character U+0000' })
  .meta({ pattern: '^[^\\x00]*$' })

export const overlap = z.enum(OVERLAPS).meta({ id: 'OverlapPolicy' })
export const keep = z.enum(KEEPS).meta({ id: 'HistoryPolicy', description: 'Which runs stay in the history.' })
export const skipReason = z.enum(SKIP_REASONS).meta({ id: 'SkipReason' })
export const runState = z.enum(RUN_STATES).meta({ id: 'RunState' })
export const scheduleState = z.enum(SCHEDULE_STATES).meta({ id: 'ScheduleState' })
export const whenBusy = z.enum(WHEN_BUSY).meta({ id: 'WhenBusy' })

export function iso(instant: number | Date): string {
  return new Date(instant).toISOString()
}
