/** A timeline is an ordered set of instants: the nominal ticks of a schedule. Instants are epoch milliseconds. */
import { MAX_INSTANT, MIN_INSTANT } from './calendar.js'
import { CronTimeline, DST_GAPS, DST_REPEATS, type DstRule } from './cron/cron.js'
import { AT, EVERY, splitNickname } from './cron/nicknames.js'
import { MAX_EXPRESSION, parseCron } from './cron/parse.js'
import type { Duration } from './duration.js'
import { quote, timeError } from './error.js'
import { type Instant, instantMs } from './instant.js'
import { InstantsTimeline, instantList } from './instants.js'
import { IntervalTimeline, intervalMs } from './interval.js'
import { zone } from './zone.js'

export interface Timeline {
  readonly kind: 'cron' | 'every' | 'at'
  /** The first tick strictly after an instant. */
  next(after: number): number | undefined
  /** The last tick strictly before an instant. */
  previous(before: number): number | undefined
  /** At most `limit` ticks after `from`, up to and including `to`. */
  between(from: number, to: number, limit: number): number[]
  /** How many ticks come after `from`, up to and including `to`; counted, not enumerated. */
  count(from: number, to: number): number
  describe(): string
}

export interface CronSpec {
  /** A cron expression, a nickname, `@every 1h30m` or `@at 2026-03-01T09:00:00Z`. */
  readonly cron: string
  /** IANA name; UTC when absent. */
  readonly timezone?: string
  readonly dst?: DstRule
}

export interface EverySpec {
  readonly every: Duration
}

export interface AtSpec {
  readonly at: Instant | readonly Instant[]
  /** For instants that are written without an offset. */
  readonly timezone?: string
}

export type TimelineSpec = string | CronSpec | EverySpec | AtSpec

/** A timeline as data, as it is stored with a schedule. `openTimeline` makes a `Timeline` of it. */
export type ParsedTimeline =
  | { readonly cron: string; readonly timezone?: string; readonly dst?: DstRule }
  | { readonly every: number }
  | { readonly at: readonly number[] }

/** Checks a spec and returns it as plain data. */
export function parseTimeline(spec: TimelineSpec): ParsedTimeline {
  const plain = expand(spec)
  if ('every' in plain) return { every: intervalMs(plain.every) }
  if ('at' in plain) return { at: parseInstants(plain) }
  const { cron, timezone, dst } = plain
  cronTimeline(plain)
  return { cron, ...(timezone === undefined ? {} : { timezone }), ...(dst === undefined ? {} : { dst: { ...dst } }) }
}

/**
 * Opens a parsed timeline. `anchor` is the instant that intervals are counted from: the first tick is one interval
 * after it. Cron expressions and lists of instants do not depend on it.
 */
export function openTimeline(parsed: ParsedTimeline, anchor: number): Timeline {
  if ('every' in parsed) return new IntervalTimeline(parsed.every, anchor)
  if ('at' in parsed) return new InstantsTimeline(parsed.at)
  return cronTimeline(parsed)
}

/** The timeline of a spec, with `anchor` as in `openTimeline`. */
export function timeline(spec: TimelineSpec, anchor = 0): Timeline {
  return openTimeline(parseTimeline(spec), checkAnchor(anchor))
}

/** Expands the text of `cron`, which may be a cron expression, `@every …` or `@at …`. */
function expand(spec: TimelineSpec): CronSpec | EverySpec | AtSpec {
  const given = typeof spec === 'string' ? { cron: spec } : checkSpec(spec)
  if (!('cron' in given)) return given
  const { cron } = given
  if (typeof cron !== 'string') throw timeError('TIMELINE_INVALID', `cron must be text, not ${quote(cron)}`)
  const [head = '', rest = ''] = splitNickname(cron)
  if (head !== EVERY && head !== AT) return given
  if (cron.length > MAX_EXPRESSION) throw tooLong(cron)
  if (given.dst !== undefined) throw timeError('DST_INVALID', `dst does not apply to ${head}: remove it`)
  if (head === AT) return { at: rest.split(/[\s,]+/).filter(Boolean), ...zoneOf(given) }
  if (given.timezone !== undefined) {
    throw timeError('TIMELINE_INVALID', 'timezone does not apply to @every: an interval is the same in every zone')
  }
  return { every: rest }
}

function zoneOf({ timezone }: CronSpec): { timezone?: string } {
  return timezone === undefined ? {} : { timezone }
}

function checkSpec<T extends object>(spec: T): T {
  // Only own keys count, because every array has methods named `at` and `every`.
  const given = typeof spec === 'object' && spec !== null
  const kinds = ['cron', 'every', 'at'].filter((kind) => given && Object.hasOwn(spec, kind))
  if (kinds.length === 1) return spec
  throw timeError(
    'TIMELINE_INVALID',
    kinds.length === 0
      ? 'a timeline needs one of cron, every or at'
      : `a timeline takes one of cron, every and at, not ${kinds.join(' and ')}`,
  )
}

function checkAnchor(anchor: number): number {
  if (typeof anchor === 'number' && anchor >= MIN_INSTANT && anchor <= MAX_INSTANT) return Math.floor(anchor)
  throw timeError(
    'INSTANT_OUT_OF_RANGE',
    `anchor ${quote(anchor)} is out of range: epoch milliseconds, years 1 to 9999`,
  )
}

function parseInstants({ at, timezone }: AtSpec): number[] {
  const local = timezone === undefined ? undefined : zone(timezone)
  const list = Array.isArray(at) ? (at as readonly Instant[]) : [at as Instant]
  return instantList(list.map((instant) => instantMs(instant, local)))
}

// ── Cron timelines are shared: thousands of schedules say "0 9 * * 1-5" ─────────────────────────────────────────────

const CACHE_SIZE = 100_000
let young = new Map<string, CronTimeline>()
let old = new Map<string, CronTimeline>()

function cronTimeline({ cron, timezone = 'UTC', dst }: CronSpec): Timeline {
  // Zones and expressions have no "|", so distinct specs have distinct keys.
  const key = `${dst === undefined ? '--' : dstKey(dst)}${typeof timezone === 'string' ? timezone : zone(timezone).name}|${cron}`
  const known = young.get(key)
  if (known !== undefined) return known
  const made = old.get(key) ?? parseCronTimeline({ cron, timezone, ...(dst === undefined ? {} : { dst }) })
  remember(key, made)
  return made
}

/** Parses without looking into the cache. */
export function parseCronTimeline({ cron, timezone = 'UTC', dst }: CronSpec): CronTimeline {
  if (dst !== undefined) checkDst(dst)
  return new CronTimeline(cron, parseCron(cron), zone(timezone), dst)
}

/**
 * The cache has two generations. A full young generation becomes the old one; entries of the former old generation that
 * were not used since are dropped.
 */
function remember(key: string, made: CronTimeline): void {
  if (young.size >= CACHE_SIZE) {
    old = young
    young = new Map()
  }
  young.set(key, made)
}

function checkDst(dst: DstRule): Required<DstRule> {
  const given = typeof dst === 'object' && dst !== null && !Array.isArray(dst)
  const { gap = 'shift', repeat = 'first', ...strangers } = given ? dst : {}
  const [stranger] = Object.keys(strangers)
  if (stranger !== undefined) {
    throw timeError('DST_INVALID', `dst has no ${quote(stranger)}: its fields are gap and repeat`)
  }
  if (given && DST_GAPS.includes(gap) && DST_REPEATS.includes(repeat)) return { gap, repeat }
  throw timeError(
    'DST_INVALID',
    given
      ? `dst is { gap: ${quote(gap)}, repeat: ${quote(repeat)} }: gap is "shift" or "skip", repeat is "first" or "both"`
      : `dst is ${quote(dst)}: write { gap: "shift" or "skip", repeat: "first" or "both" }`,
  )
}

function dstKey(dst: DstRule): string {
  const { gap, repeat } = checkDst(dst)
  return `${gap === 'skip' ? 1 : 0}${repeat === 'both' ? 1 : 0}`
}

function tooLong(expression: string) {
  return timeError(
    'EXPRESSION_TOO_LONG',
    `expression is ${expression.length} characters long: at most ${MAX_EXPRESSION} are allowed`,
  )
}
