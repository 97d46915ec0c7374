/**
 * The stored layout of a run, which is in the hash `runs` under its number: a line of JSON with Belfry's own fields
 * (`StoredRun`), then its result, its error, its sink's options and its payload. Each of these is a line of JSON or an
 * empty line.
 *
 *     {"state":"ready","target":"job:mail","origin":"enqueue","priority":0,"keep":"all","readyAt":1700000000000,…}
 *     ⏎ (result)
 *     ⏎ (error)
 *     ⏎ (options)
 *     {"to":"ada@example.org"}
 *
 * A field that does not apply is absent: a run without a key has no `key`. Scripts read and write the text by
 * `loaded-runs.lua`.
 */

import type { ErrorRecord } from '../../../core/errors.js'
import type { SkipReason } from '../../../core/policies.js'
import type { RunKey } from '../../../core/runs/key.js'
import type { Keep, NewRun, Origin, Run, RunState, WaitsFor } from '../../../core/runs/run.js'
import { fromText, targetName, targetOf, targetOptions, toText } from '../../../core/runs/stored-text.js'
import type { Shape } from '../connection/lua-script.js'

/** The first line. Tokens are texts, because cjson writes only 14 digits of a number. */
export interface StoredRun {
  readonly state: RunState
  readonly waitsFor?: WaitsFor
  /** The run waits for its key, and is skipped once the key is known to be busy. */
  readonly skipsIfBusy?: true
  /** `job:<name>` or `sink:<name>`. */
  readonly target: string
  readonly origin: Origin
  readonly priority: number
  readonly keep: Keep
  readonly schedule?: string
  readonly tick?: number
  readonly backfill?: string
  readonly key?: string
  readonly permits?: number
  readonly whenBusy?: 'skip' | 'wait'
  /** The shard of its key, if that is not the shard of the run: a ticket represents the run there. */
  readonly keyShard?: number
  /** Its key has not been computed yet. */
  readonly unstamped?: true
  readonly dedupe?: string
  /** For how long after the run's end its dedupe key refuses other runs. */
  readonly dedupeForMs?: number
  readonly readyAt: number
  readonly startBy?: number
  /** `startBy` is the schedule's deadline. If absent, the missed policy has set `startBy`. */
  readonly byDeadline?: true
  readonly createdAt: number
  readonly attempt: number
  readonly failures: number
  readonly takeovers: number
  /** The run was taken over, and its next start counts as a takeover. */
  readonly isTakenOver?: true
  readonly cancelRequested?: true
  /** The token of the newest attempt. */
  readonly token?: string
  readonly instance?: string
  readonly claim?: number
  readonly startedAt?: number
  /** A claimed ticket whose run may not be running: the run has not started yet, or may have ended. */
  readonly unconfirmed?: true
  /** A ticket whose run is being settled: a late confirmation of its start must not count. */
  readonly isEnding?: true
  readonly finishedAt?: number
  readonly settledToken?: string
  readonly reason?: SkipReason
}

type Made = { readonly [Field in keyof NewRun]?: NewRun[Field] | undefined } & Pick<
  NewRun,
  'target' | 'origin' | 'priority' | 'keep'
>

/** The fields of a new run, as scripts take them. */
type MadeRun = ReturnType<typeof madeRun>
export const madeRunShape: Shape<MadeRun> = { read: (run) => run as MadeRun, names: [] }

export function madeRun(run: Made, keyShard: number | undefined) {
  const { target, origin, priority, keep, schedule, tick, backfill, key, dedupe, dedupeForMs } = run
  return {
    ...{ target: targetName(target), origin, priority, keep, schedule, tick, backfill, dedupe, dedupeForMs },
    ...madeKey(key, keyShard),
  }
}

export function madeKey(key: RunKey | 'unstamped' | undefined, keyShard: number | undefined) {
  if (key === undefined) return {}
  if (key === 'unstamped') return { unstamped: true }
  return { key: key.name, permits: key.limit, whenBusy: key.whenBusy, keyShard }
}

/** The last two lines of a run's text: options and payload. */
export function runBody({ target, payload }: Pick<NewRun, 'target' | 'payload'>): string {
  return `${targetOptions(target) ?? ''}\n${toText(payload)}`
}

export function toRun(id: string, stored: string): Run {
  const [head = '', result = '', error = '', options = '', payload = 'null'] = stored.split('\n')
  const run = JSON.parse(head) as StoredRun
  const { target, key, permits = 1, whenBusy = 'wait', token, readyAt, startBy, tick } = run
  const { schedule, backfill, dedupe, waitsFor, instance, startedAt, finishedAt, reason } = run
  const { origin, priority, keep, state, createdAt, attempt, failures, takeovers } = run
  return {
    ...{ id, target: targetOf(target, options === '' ? null : options), payload: fromText(payload) },
    ...{ origin, priority, keep, state, createdAt, readyAt: Number(readyAt), attempt, failures, takeovers },
    ...(schedule === undefined ? {} : { schedule }),
    ...(tick === undefined ? {} : { tick: Number(tick) }),
    ...(backfill === undefined ? {} : { backfill }),
    ...(key === undefined ? {} : { key: { name: key, limit: permits, whenBusy } }),
    ...(dedupe === undefined ? {} : { dedupe }),
    ...(waitsFor === undefined ? {} : { waitsFor }),
    ...(reason === undefined ? {} : { reason }),
    ...(startBy === undefined ? {} : { startBy: Number(startBy) }),
    ...(token === undefined ? {} : { token: Number(token) }),
    ...(instance === undefined ? {} : { instance }),
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(finishedAt === undefined ? {} : { finishedAt }),
    ...(run.cancelRequested === true ? { cancelRequested: true as const } : {}),
    ...(result === '' ? {} : { result: fromText(result) }),
    ...(error === '' ? {} : { error: JSON.parse(error) as ErrorRecord }),
  }
}

/** Parses a run that a script returned: its number, a line break, and its text. */
export function toldRun(shard: number, told: string): Run {
  const lineEnd = told.indexOf('\n')
  return toRun(runId(shard, told.slice(0, lineEnd)), told.slice(lineEnd + 1))
}

/**
 * A run's id is its number, which tells its age, and its shard. For a ticket it is the id of the run that the ticket
 * represents.
 */
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

export interface RunPlace {
  readonly shard: number
  readonly number: string
}

export function runPlace(id: string): RunPlace | undefined {
  return RUN_ID.test(id) ? { shard: Number(id.slice(17)), number: id.slice(0, 16) } : undefined
}

/** The number in a run's id. Of an id that the store did not issue: `-`, which no run has. */
export function numberIn(id: string): string {
  return runPlace(id)?.number ?? '-'
}
