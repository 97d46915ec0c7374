/**
 * The stored layout of a lock, or of a run's key: one line of JSON under the key `lock:<name>`.
 *
 *     {"lastToken":"1700000000000123","waiters":true,"holders":[
 *       {"holder":"3b1c:7","token":"1700000000000123","acquiredAt":1700000000000,"expiresAt":1700000030000,"instance":"3b1c"}]}
 *
 * Who waits is in `lock-waiters:<name>`, in order. `lock-waiter-terms:<name>` has the terms of each, by holder (`StoredTerms`).
 * Only scripts read and write them: the lock by `permits.lua`, the terms by `acquire.lua` and `pass-on.lua`. They answer with
 * leases in the same fields.
 */

import type { Lease } from '../../../core/locks/lease.js'
import { flag, maybe, named, number, type ToldOf, text } from '../connection/lua-script.js'
import { runId } from '../runs/run-codec.js'

/** Tokens are texts, because cjson writes 14 digits of a number. */
export interface StoredLock {
  /** The newest token that was given under this name. */
  readonly lastToken: string
  /** Locks wait for it. */
  readonly waiters?: true
  /** Runs wait for it. */
  readonly runs?: true
  readonly holders: readonly StoredLease[]
}

export interface StoredLease {
  readonly holder: string
  readonly token: string
  readonly acquiredAt: number
  /** Absent for the attempt of a run, which lasts as long as its instance's lease. */
  readonly expiresAt?: number
  /** It was released before its minimum hold was over, and stays until then. */
  readonly released?: true
  readonly instance?: string
  /** The holder is an attempt of this run. */
  readonly run?: string
}

/** What a waiter asks for, and until when its place counts. */
export interface StoredTerms {
  readonly ttlMs: number
  readonly permits: number
  readonly instance?: string
  /** The lowest token that it may be given, as text. */
  readonly floor: string
  readonly placeUntil: number
}

export const toldLease = named({
  holder: text,
  token: number,
  acquiredAt: number,
  expiresAt: number,
  released: flag,
  instance: maybe(text),
  run: maybe(text),
})

export function toLease(shard: number, name: string, told: ToldOf<typeof toldLease>): Lease {
  const { run, released, ...lease } = told
  return {
    ...{ name, ...lease },
    ...(run === undefined ? {} : { run: runId(shard, run) }),
    ...(released ? { released } : {}),
  }
}
