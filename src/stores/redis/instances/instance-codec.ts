/**
 * The stored layout of an instance, under the key `instance:<id>`: a line of JSON with its state (`StoredInstance`), then a
 * line with its description of itself (`InstanceInfo`).
 *
 *     {"expiresAt":…,"claimsSettled":7,"joinedAt":…,"beatAt":…,"app":"shop","declarations":"3f2a"}
 *     {"id":"3b1c","host":"web-1","pid":4711,…}
 *
 * Scripts read and write it by `instance-text.lua`.
 */
import type { Instance, InstanceInfo } from '../../../core/instances/instance.js'

export interface StoredInstance {
  readonly expiresAt: number
  /** Another instance has declared it dead. Its beats are refused from then on, even if its lease has not expired. */
  readonly dead?: true
  /** Every claim up to this number was answered or has failed. */
  readonly claimsSettled: number
  readonly joinedAt: number
  readonly beatAt: number
  readonly app?: string
  /** The hash of the set of schedules that it declared. */
  readonly declarations?: string
}

/** Undefined if the instance was declared dead. */
export function toInstance(stored: string): Instance | undefined {
  const [standing = '{}', info = '{}'] = stored.split('\n')
  const { expiresAt, joinedAt, beatAt, dead } = JSON.parse(standing) as StoredInstance
  return dead ? undefined : { ...(JSON.parse(info) as InstanceInfo), joinedAt, beatAt, expiresAt }
}
