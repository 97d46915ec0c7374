/**
 * A run as text, in six lines that scripts and this side read alike:
 *
 * 1. what changes: state, what it waits for, counters, tokens, times, its instance, and its kind (p: plain; l: only of a
 *    schedule; x: with a key, a dedupe key or a missing stamp) with what the history keeps of it
 * 2. what it was made as: origin, priority, keep, target, schedule, backfill, key, dedupe key
 * 3. its result, 4. its error, 5. its sink's options, 6. its payload: JSON, or nothing
 */
import type { ErrorRecord } from '../../core/errors.js'
import type { RunKey } from '../../core/key.js'
import type { SkipReason } from '../../core/policies.js'
import type { Keep, NewRun, Origin, Run, RunState, WaitsFor } from '../../core/run.js'
import { fromText, targetName, targetOf, targetOptions, toText } from '../../core/stored-text.js'
import { fromWord, numberOf, word } from './token-text.js'

const STATES: Readonly<Record<string, RunState>> = {
  W: 'waiting',
  R: 'ready',
  X: 'running',
  S: 'succeeded',
  F: 'failed',
  C: 'cancelled',
  K: 'skipped',
}
const WAITS: Readonly<Record<string, WaitsFor>> = { s: 'stamp', o: 'overlap', k: 'key' }
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

type Mutable<Type> = { -readonly [Field in keyof Type]: Type[Field] }

export function toRun(id: string, text: string): Run {
  const [head = '', made = '', result = '', error = '', options = '', payload = 'null'] = text.split('\n')
  const words = head.split(' ')
  const [state = '', waits = '', attempt, failures, takeovers, token, , , cancel, readyAt, startBy, createdAt] = words
  const [startedAt, finishedAt, , tick, reason = '-', instance = '-'] = words.slice(12)
  const [origin = '', priority, keep = '', target = '', schedule = '-', backfill = '-', ...rest] = made.split(' ')
  const [keyName = '-', limit, whenBusy, , dedupe = '-'] = rest
  const run: Mutable<Run> = {
    id,
    target: targetOf(fromWord(target) ?? '', options === '' ? null : options),
    origin: ORIGINS[origin] ?? 'enqueue',
    payload: fromText(payload),
    priority: Number(priority),
    keep: KEEPS[keep] ?? 'all',
    state: STATES[state] ?? 'failed',
    createdAt: Number(createdAt),
    readyAt: Number(readyAt),
    attempt: Number(attempt),
    failures: Number(failures),
    takeovers: Number(takeovers),
  }
  if (schedule !== '-') run.schedule = fromWord(schedule) ?? ''
  if (tick !== '-') run.tick = Number(tick)
  if (backfill !== '-') run.backfill = fromWord(backfill) ?? ''
  if (keyName !== '-') {
    run.key = { name: fromWord(keyName) ?? '', limit: Number(limit), whenBusy: whenBusy === 's' ? 'skip' : 'wait' }
  }
  if (dedupe !== '-') run.dedupe = fromWord(dedupe) ?? ''
  const waitsFor = WAITS[waits]
  if (waitsFor !== undefined) run.waitsFor = waitsFor
  if (reason !== '-') run.reason = reason as SkipReason
  if (startBy !== '-') run.startBy = Number(startBy)
  if (token !== '-') run.token = Number(token)
  if (instance !== '-') run.instance = fromWord(instance) ?? ''
  if (startedAt !== '-') run.startedAt = Number(startedAt)
  if (finishedAt !== '-') run.finishedAt = Number(finishedAt)
  if (cancel === '1') run.cancelRequested = true
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

export function runPlace(id: string): { readonly shard: number; readonly number: string } | undefined {
  const [number = '', shard] = id.split('-')
  return /^\d{16}$/.test(number) && shard !== undefined && /^\d{1,4}$/.test(shard)
    ? { shard: numberOf(shard) ?? 0, number }
    : undefined
}
