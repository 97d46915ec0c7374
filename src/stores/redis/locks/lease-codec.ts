/**
 * The stored layout of a lock, or of a run's key: one line of JSON under the key `lock:<name>`.
 *
 *     {"lastToken":"1700000000000123","waiters":true,"holders":[
 *       {"holder":"3b1c:7","token":"1700000000000123","acquiredAt":1700000000000,"expiresAt":1700000030000,"instance":"3b1c"}]}
 *
 * `lock-waiters:<name>` has the waiting holders, oldest first. `lock-waiter-terms:<name>` has the terms of each, by holder
 * (`StoredTerms`). Only scripts read and write these keys: the lock by `permits.lua`, the terms by `acquire.lua` and
 * `pass-on.lua`. They return leases with the same fields.
 */

import type { Lease } from '../../../core/locks/lease.js'
import { flag, maybe, named, number, type ToldOf, text } from '../connection/lua-script.js'
import { runId } from '../runs/run-codec.js'

/** Tokens are texts, because cjson writes only 14 digits of a number. */
export interface StoredLock {
  /** The newest token that was issued under this name. */
  readonly lastToken: string
  /** Callers of `acquire` wait for a permit. */
  readonly waiters?: true
  /** Runs wait for a permit. */
  readonly runs?: true
  readonly holders: readonly StoredLease[]
}

export interface StoredLease {
  readonly holder: string
  readonly token: string
  readonly acquiredAt: number
  /** Absent for a run's attempt: its lease lasts as long as the lease of its instance. */
  readonly expiresAt?: number
  /** The holder released it before its minimum hold was over. The lease stays until then. */
  readonly released?: true
  readonly instance?: string
  /** The run whose attempt is the holder. */
  readonly run?: string
}

/** What a waiter has asked for, and until when its place in the queue is valid. */
export interface StoredTerms {
  readonly ttlMs: number
  readonly permits: number
  readonly instance?: string
  /** The lowest token that the waiter may get, as text. */
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
