/**
 * One comparison: ten successive ticks of an expression in a zone, from an instant, by Belfry and by a library.
 *
 * Away from clock changes the two must be equal. Near a change the libraries follow other rules, or none, so there
 * Belfry's ticks are compared with the brute-force oracle instead.
 */
import { BelfryError, type DstRule, type Timeline, timeline } from '../../src/time/index.js'
import { ticksInWindow } from './brute-force.js'
import { type Dialect, type Expression, expression } from './expression.js'
import { type Random, random } from './random.js'
import { type Change, changes, type WallClock, type Window, wallClock, windowAround } from './wall-clock.js'

const HOUR = 3_600_000
const DAY = 86_400_000

export const FROM = Date.UTC(1990, 0, 1)
export const TO = Date.UTC(2061, 0, 1)
/** The oracle knows clock changes up to here; later ticks are not compared. */
const KNOWN_UNTIL = Date.UTC(2064, 0, 1)

export const TICKS = 10

/** A cron library to compare with. */
export interface Library {
  readonly name: string
  readonly dialect: Dialect
  /** The ticks after an instant, fewer when there are no more. Throws when the library gives up. */
  ticks(expression: Expression, at: ZoneClock, after: number): number[]
  /** Whether a known defect affects this local time; only there may ticks differ. */
  isKnownDefect(wall: number): boolean
  /** How long after a clock change the library's ticks may be wrong. */
  readonly reachMs: number
  /** Whether a backward clock change can make the library give up or return ticks out of order. */
  readonly getsLostInRepeats: boolean
}

export interface ZoneClock {
  readonly zone: string
  readonly clock: WallClock
  readonly changes: readonly Change[]
  window(change: Change): Window
}

export function zoneClock(zone: string): ZoneClock {
  const clock = wallClock(zone)
  const windows = new Map<Change, Window>()
  return {
    zone,
    clock,
    changes: changes(clock, FROM - 40 * DAY, KNOWN_UNTIL + 40 * DAY, 3 * DAY),
    window(change) {
      const window = windows.get(change) ?? windowAround(clock, change)
      windows.set(change, window)
      return window
    },
  }
}

export interface Outcome {
  /** Ticks equal to the library's. */
  equal: number
  /** Ticks equal to the brute-force oracle's. */
  proven: number
  /** Expressions that differ only where the library has a known defect. */
  explained: number
  /** Expressions that the library could not finish near a backward clock change. */
  lost: number
  /** Expressions that can never fire. */
  refused: number
}

/** Runs the case of a seed; throws on an unexplained difference. */
export function compareCase(
  seed: number,
  at: ZoneClock,
  near: Change | undefined,
  library: Library,
  outcome: Outcome,
): void {
  const dice = random(seed)
  const made = expression(dice, library.dialect, { nearChange: near !== undefined })
  const start = near === undefined ? startAnywhere(dice) : startNear(dice, near)
  const report = (what: string, ours: unknown, theirs: unknown) =>
    new Error(
      `${what}\n  seed ${seed}: "${made.text}" in ${at.zone} after ${new Date(start).toISOString()}` +
        `\n  Belfry:   ${show(ours)}\n  expected: ${show(theirs)}`,
    )
  const ours = open(made, at.zone)
  if (ours === undefined) {
    outcome.refused += 1
    if (firesEver(made)) throw report('Belfry says that it can never fire', 'refused', 'ticks')
    return
  }
  const mine = take(ours, start)
  const theirs = ask(library, made, at, start)
  if (theirs instanceof Error || runsBackwards(theirs, start)) {
    if (!library.getsLostInRepeats || !isNearRepeat(at, start, mine))
      throw report(`${library.name} got lost`, mine, theirs)
    outcome.lost += 1
  } else {
    compareTicks(mine, theirs, at, library, outcome, report)
  }
  const end = mine.length < TICKS ? KNOWN_UNTIL : Math.min(mine.at(-1) ?? KNOWN_UNTIL, KNOWN_UNTIL)
  for (const change of reached(at, start, end)) {
    const window = at.window(change)
    const within = (tick: number) => tick > start && tick <= end && tick >= window.from && tick <= window.to
    const expected = ticksInWindow(made, window, undefined).filter(within)
    const got = mine.filter(within)
    if (!same(got, expected)) throw report(`at the change of ${new Date(change.at).toISOString()}`, got, expected)
    outcome.proven += got.length
  }
  if (near !== undefined) proveWindow(dice, made, at, near, outcome, report)
}

type Report = (what: string, ours: unknown, theirs: unknown) => Error

function ask(library: Library, made: Expression, at: ZoneClock, start: number): number[] | Error {
  try {
    return library.ticks(made, at, start)
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

function runsBackwards(ticks: readonly number[], start: number): boolean {
  return ticks.some((tick, index) => tick <= (ticks[index - 1] ?? start))
}

function isNearRepeat(at: ZoneClock, start: number, ticks: readonly number[]): boolean {
  const end = ticks.at(-1) ?? KNOWN_UNTIL
  return at.changes.some((change) => change.jump < 0 && change.at > start - 2 * DAY && change.at < end + 2 * DAY)
}

function compareTicks(
  mine: readonly number[],
  theirs: readonly number[],
  at: ZoneClock,
  library: Library,
  outcome: Outcome,
  report: Report,
): void {
  const until = Math.min(completeUntil(mine), completeUntil(theirs))
  const aside = (tick: number) =>
    at.changes.some(({ at, jump }) => Math.abs(tick - at) <= Math.abs(jump) + library.reachMs)
  const kept = (ticks: readonly number[]) => ticks.filter((tick) => tick <= until && !aside(tick))
  const [ours, others] = [kept(mine), kept(theirs)]
  if (same(ours, others)) {
    outcome.equal += ours.length
    return
  }
  const sound = (tick: number) => !library.isKnownDefect(at.clock(tick))
  if (!same(ours.filter(sound), others.filter(sound))) throw report('away from clock changes', mine, theirs)
  outcome.explained += 1
}

/** The instant up to which a list of ticks is complete: its last tick if it has ten, unlimited if it is shorter. */
function completeUntil(ticks: readonly number[]): number {
  return ticks.length < TICKS ? KNOWN_UNTIL : Math.min(ticks.at(-1) ?? KNOWN_UNTIL, KNOWN_UNTIL)
}

/** Checks all ticks of a window under a `dst` rule: forwards, backwards, listed and counted. */
function proveWindow(
  dice: Random,
  made: Expression,
  at: ZoneClock,
  near: Change,
  outcome: Outcome,
  report: Report,
): void {
  const dst = rule(dice)
  const window = at.window(near)
  const expected = ticksInWindow(made, window, dst)
  if (expected.length > 500) return
  const line = timeline({ cron: made.text, timezone: at.zone, ...(dst === undefined ? {} : { dst }) })
  const [before, to] = [window.from - 1, window.to]
  const where = `under ${JSON.stringify(dst)} at the change of ${new Date(near.at).toISOString()}`
  const listed = line.between(before, to, expected.length + 5)
  if (!same(listed, expected)) throw report(where, listed, expected)
  if (line.count(before, to) !== expected.length)
    throw report(`count ${where}`, line.count(before, to), expected.length)
  const backwards: number[] = []
  for (let tick = line.previous(to + 1); tick !== undefined && tick > before; tick = line.previous(tick)) {
    backwards.unshift(tick)
    if (backwards.length > expected.length + 5) break
  }
  if (!same(backwards, expected)) throw report(`backwards ${where}`, backwards, expected)
  outcome.proven += expected.length
  // Starts inside the window, at any second.
  const inside = dice.between(window.from, to)
  const after = expected.find((tick) => tick > inside)
  const next = line.next(inside)
  if (after === undefined ? next !== undefined && next <= to : next !== after) {
    throw report(`next after ${new Date(inside).toISOString()} ${where}`, next, after)
  }
  const counted = expected.filter((tick) => tick > inside).length
  if (line.count(inside, to) !== counted)
    throw report(`count after ${inside} ${where}`, line.count(inside, to), counted)
}

function rule(dice: Random): DstRule | undefined {
  if (dice.chance(0.3)) return undefined
  return { gap: dice.pick(['shift', 'skip']), repeat: dice.pick(['first', 'both']) }
}

function open(made: Expression, zone: string): Timeline | undefined {
  try {
    return timeline({ cron: made.text, timezone: zone })
  } catch (error) {
    if (error instanceof BelfryError && error.code === 'EXPRESSION_NEVER_FIRES') return undefined
    throw new Error(`Belfry refuses "${made.text}"`, { cause: error })
  }
}

function firesEver(made: Expression): boolean {
  for (let day = FROM; day < Date.UTC(2071, 0, 1); day += DAY) {
    const date = new Date(day)
    if (made.matchesDay(date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate())) return true
  }
  return false
}

function take(line: Timeline, start: number): number[] {
  const ticks: number[] = []
  let tick = line.next(start)
  while (tick !== undefined && ticks.length < TICKS) {
    ticks.push(tick)
    tick = line.next(tick)
  }
  return ticks
}

/** The clock changes whose windows are in a range; of many, the first and the last few. */
function reached(at: ZoneClock, start: number, end: number): Change[] {
  const found = at.changes.filter((change) => change.at + 2 * DAY > start && change.at - 2 * DAY < end)
  return found.length <= 6 ? found : [...found.slice(0, 4), ...found.slice(-2)]
}

function startAnywhere(dice: Random): number {
  return FROM + Math.floor((dice.below(2 ** 30) / 2 ** 30) * (TO - FROM))
}

function startNear(dice: Random, { at, jump }: Change): number {
  const reach = Math.abs(jump)
  const from = at - reach - dice.pick([HOUR, 6 * HOUR, 36 * HOUR, 8 * DAY])
  const start = dice.between(Math.floor(from / 1_000), Math.floor((at + reach + HOUR) / 1_000)) * 1_000
  return dice.chance(0.3) ? start + dice.below(1_000) : start
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index])
}

function show(value: unknown): string {
  if (!Array.isArray(value))
    return typeof value === 'number' && value > 1e9 ? new Date(value).toISOString() : String(value)
  return value.length === 0 ? 'none' : value.map((tick: number) => new Date(tick).toISOString()).join(' ')
}
