/**
 * The stored layout of an instance: a line of JSON with how it stands (`StoredInstance`), then a line with what it said of
 * itself (`InstanceInfo`), under the key `instance:<id>`.
 *
 *     {"expiresAt":…,"claimsSettled":7,"joinedAt":…,"beatAt":…,"app":"shop","declarations":"3f2a"}
 *     {"id":"3b1c","host":"web-1","pid":4711,…}
 *
 * Scripts write it by `instance-text.lua`.
 */
import type { Instance, InstanceInfo } from '../../../core/instances/instance.js'

export interface StoredInstance {
  readonly expiresAt: number
  /** Another instance has declared it dead: it may beat no more, whatever its lease says. */
  readonly dead?: true
  /** Up to this number, every claim was answered or has failed. */
  readonly claimsSettled: number
  readonly joinedAt: number
  readonly beatAt: number
  readonly app?: string
  /** The hash of the set that it declared. */
  readonly declarations?: string
}

/** Undefined for one that was declared dead. */
export function toInstance(stored: string): Instance | undefined {
  const [standing = '{}', info = '{}'] = stored.split('\n')
  const { expiresAt, joinedAt, beatAt, dead } = JSON.parse(standing) as StoredInstance
  return dead ? undefined : { ...(JSON.parse(info) as InstanceInfo), joinedAt, beatAt, expiresAt }
}
