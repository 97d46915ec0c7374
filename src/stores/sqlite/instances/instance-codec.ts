import type { Instance, InstanceInfo, JobInfo } from '../../../core/instances/instance.js'
import type { DeclaredSet } from '../../../core/store.js'

export interface InstanceRow {
  /** JSON of the `InstanceInfo` given at the join. */
  readonly info: string
  readonly joined_at: number
  readonly beat_at: number
  readonly expires_at: number
}

export function toInstance({ info, joined_at, beat_at, expires_at }: InstanceRow): Instance {
  return { ...(JSON.parse(info) as InstanceInfo), joinedAt: joined_at, beatAt: beat_at, expiresAt: expires_at }
}

export interface JobRow {
  readonly info: string
}

export function toJob({ info }: JobRow): JobInfo {
  return JSON.parse(info) as JobInfo
}

export interface DeclaredRow {
  readonly hash: string
  readonly release: string | null
  /** JSON list of ids. */
  readonly schedules: string
  readonly first_seen_at: number
  readonly alive_at: number
}

export function toDeclared({ hash, release, schedules, first_seen_at, alive_at }: DeclaredRow): DeclaredSet {
  return {
    ...{ hash, schedules: JSON.parse(schedules) as string[], firstSeenAt: first_seen_at, aliveAt: alive_at },
    ...(release === null ? {} : { release }),
  }
}
