/**
 * Exclusive keys. A key names the lease that a run must hold while it runs. It is stored with the run before the run can be
 * claimed, so a store needs no code of the job to keep runs apart.
 *
 *     job send-digest, by ['region'], payload { region: 'eu' }   →   job:send-digest:["eu"]
 */

import { createHash } from 'node:crypto'
import { canonicalJson, type Json } from '../checks/json.js'
import { DEFAULTS, LIMITS } from '../defaults.js'
import type { WhenBusy } from '../policies.js'
import type { Origin } from './run.js'

export interface RunKey {
  readonly name: string
  /** How many runs may hold it at a time. */
  readonly limit: number
  readonly whenBusy: WhenBusy
}

/** How a job's keys are made, as data. */
export interface KeyRule {
  /** Jobs with the same name share a lease. By default each job has its own. */
  readonly name?: string
  /**
   * Property paths of the payload; the whole payload when absent. `code` means that only the job's code can compute the
   * value.
   */
  readonly by?: readonly string[] | 'code'
  readonly limit: number
  /** By default it depends on the run's origin. */
  readonly whenBusy?: WhenBusy
  readonly checkOnEnqueue: boolean
}

/** The key of a payload, or undefined when only the job's code can compute it. */
export function keyOf(job: string, rule: KeyRule, payload: Json, origin: Origin): RunKey | undefined {
  if (rule.by === 'code') return undefined
  return keyFrom(job, rule, rule.by === undefined ? payload : rule.by.map((path) => valueAt(payload, path)), origin)
}

/** The key of the value that `by` picked, or that the job's function returned. */
export function keyFrom(job: string, rule: KeyRule, value: Json, origin: Origin): RunKey {
  const { name, limit, by } = rule
  // A shared name without `by` is one lease, whatever the payload.
  const whole = name !== undefined && by === undefined
  return {
    name: whole ? name : keyName(name ?? `job:${job}`, value),
    limit,
    whenBusy: rule.whenBusy ?? DEFAULTS.job.exclusive.whenBusy[origin],
  }
}

/** The key of messages that an ordered sink must deliver one after the other. */
export function orderKey(sink: string, key: string): RunKey {
  return { name: keyName(`sink:${sink}`, key), limit: 1, whenBusy: 'wait' }
}

/** A name that would be too long ends in a SHA-256 digest instead, so distinct keys have distinct names. */
function keyName(prefix: string, value: Json): string {
  const text = `${prefix}:${canonicalJson(value)}`
  if (text.length <= LIMITS.nameLength) return text
  return `${prefix.slice(0, 150)}#${createHash('sha256').update(text).digest('hex')}`
}

function valueAt(payload: Json, path: string): Json {
  return memberAt(payload, path) ?? null
}

export function hasPath(payload: Json, path: string): boolean {
  return memberAt(payload, path) !== undefined
}

function memberAt(payload: Json, path: string): Json | undefined {
  let value: Json | undefined = payload
  for (const part of path.split('.')) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, part)) return undefined
    value = (value as { readonly [key: string]: Json })[part]
  }
  return value
}
