/**
 * A run as text, in six lines that scripts and this side read alike:
 *
 * 1. what changes: state, what it waits for, counters, tokens, times, its instance, and its kind (p: plain; l: only of a
 *    schedule; x: with a key, a dedupe key or a missing stamp) with what the history keeps of it
 * 2. what it was made as: origin, priority, keep, target, schedule, backfill, key, dedupe key
 * 3. its result, 4. its error, 5. its sink's options, 6. its payload: JSON, or nothing
 */
import type { ErrorRecord } from '../../../core/errors.js'
import type { RunKey } from '../../../core/key.js'
import type { Mutable } from '../../../core/mutable.js'
import type { SkipReason } from '../../../core/policies.js'
import type { Keep, NewRun, Origin, Run, RunState, WaitsFor } from '../../../core/run.js'
import { fromText, targetName, targetOf, targetOptions, toText } from '../../../core/stored-text.js'
import { fromWord, word } from '../schema/words.js'

const STATES: Readonly<Record<string, RunState>> = {
  W: 'waiting',
  R: 'ready',
  X: 'running',
  S: 'succeeded',
  F: 'failed',
  C: 'cancelled',
  K: 'skipped',
}
const WAITS: Readonly<Record<string, WaitsFor>> = { s: 'stamp', o: 'overlap', k: 'key', b: 'key' }
const ORIGINS: Readonly<Record<string, Origin>> = { t: 'tick', g: 'trigger', b: 'backfill', e: 'enqueue' }
const ORIGIN_LETTERS: Readonly<Record<Origin, string>> = { tick: 't', trigger: 'g', backfill: 'b', enqueue: 'e' }
const KEEPS: Readonly<Record<string, Keep>> = { a: 'all', f: 'failures', n: 'none' }
const KEEP_LETTERS: Readonly<Record<Keep, string>> = { all: 'a', failures: 'f', none: 'n' }

type Made = Pick<NewRun, 'target' | 'origin' | 'schedule' | 'backfill' | 'priority' | 'keep' | 'key' | 'dedupe'> &
  Pick<NewRun, 'dedupeForMs'>

/** How much a run has to do with others, and what is kept of it. */
export function kindOf({ schedule, key, dedupe, keep }: Made): string {
  const kind = key !== undefined || dedupe !== undefined ? 'x' : schedule === undefined ? 'p' : 'l'
  return kind + KEEP_LETTERS[keep]
}

/** The second line, in two parts between which the schedule's word stands. */
export function madeParts(made: Omit<Made, 'schedule'>, elsewhere?: number): readonly [string, string] {
  const { origin, priority, keep, target, backfill, key, dedupe, dedupeForMs = 0 } = made
  return [
    `${ORIGIN_LETTERS[origin]} ${priority} ${KEEP_LETTERS[keep]} ${word(targetName(target))}`,
    `${word(backfill)} ${keyWords(key, elsewhere)} ${word(dedupe)} ${dedupeForMs}`,
  ]
}

export function madeLine(made: Made, elsewhere?: number): string {
  const [before, after] = madeParts(made, elsewhere)
  return `${before} ${word(made.schedule)} ${after}`
}

/** The last two lines. */
export function bodyLines({ target, payload }: Pick<NewRun, 'target' | 'payload'>): string {
  return `${targetOptions(target) ?? ''}\n${toText(payload)}`
}

/** A key of another shard is marked with that shard's number. */
export function keyWords(key: RunKey | 'unstamped' | undefined, elsewhere?: number): string {
  if (key === undefined || key === 'unstamped') return `- 0 - ${key === undefined ? 0 : 1}`
  const mark = elsewhere === undefined ? '0' : `r${elsewhere}`
  return `${word(key.name)} ${key.limit} ${key.whenBusy === 'skip' ? 's' : 'w'} ${mark}`
}

/** How many lines the text of a run has. */
export const RUN_LINES = 6

export function toRun(id: string, text: string): Run {
  return runOf(id, text.split('\n'), 0)
}

/**
 * A run whose lines begin at a place in a list. Thousands a second are read: by their places, because to take a list apart by
 * names costs several times as much.
 */
export function runOf(id: string, lines: readonly string[], from: number): Run {
  const head = (lines[from] ?? '').split(' ')
  const made = (lines[from + 1] ?? '').split(' ')
  const [result, error, options] = [lines[from + 2] ?? '', lines[from + 3] ?? '', lines[from + 4] ?? '']
  const run: Mutable<Run> = {
    id,
    target: targetOf(fromWord(made[3] ?? '') ?? '', options === '' ? null : options),
    origin: ORIGINS[made[0] ?? ''] ?? 'enqueue',
    payload: fromText(lines[from + 5] ?? 'null'),
    priority: Number(made[1]),
    keep: KEEPS[made[2] ?? ''] ?? 'all',
    state: STATES[head[0] ?? ''] ?? 'failed',
    createdAt: Number(head[11]),
    readyAt: Number(head[9]),
    attempt: Number(head[2]),
    failures: Number(head[3]),
    takeovers: Number(head[4]),
  }
  const has = (word: string | undefined): word is string => word !== '-' && word !== undefined
  if (has(made[4])) run.schedule = fromWord(made[4]) ?? ''
  if (has(head[15])) run.tick = Number(head[15])
  if (has(made[5])) run.backfill = fromWord(made[5]) ?? ''
  if (has(made[6])) {
    run.key = { name: fromWord(made[6]) ?? '', limit: Number(made[7]), whenBusy: made[8] === 's' ? 'skip' : 'wait' }
  }
  if (has(made[10])) run.dedupe = fromWord(made[10]) ?? ''
  const waitsFor = WAITS[head[1] ?? '']
  if (waitsFor !== undefined) run.waitsFor = waitsFor
  if (has(head[16])) run.reason = head[16] as SkipReason
  if (has(head[10])) run.startBy = Number(head[10])
  if (has(head[5])) run.token = Number(head[5])
  if (has(head[17])) run.instance = fromWord(head[17]) ?? ''
  if (has(head[12])) run.startedAt = Number(head[12])
  if (has(head[13])) run.finishedAt = Number(head[13])
  if (head[8] === '1') run.cancelRequested = true
  if (result !== '') run.result = fromText(result)
  if (error !== '') run.error = JSON.parse(error) as ErrorRecord
  return run
}

/** A run's id says in which shard it is; its number says how old it is. A ticket stands for a run of another shard. */
export function runId(shard: number, number: string): string {
  return isTicket(number) ? number.replace('t', '-') : `${number}-${shard}`
}

export function isTicket(number: string): boolean {
  return number.includes('t')
}

export function ticketOf(run: string): string {
  return run.replace('-', 't')
}

const RUN_ID = /^\d{16}-\d{1,4}$/

export function runPlace(id: string): { readonly shard: number; readonly number: string } | undefined {
  return RUN_ID.test(id) ? { shard: Number(id.slice(17)), number: id.slice(0, 16) } : undefined
}
