import type { KeyRule } from './key.js'

/** What an instance does: record ticks, start runs. */
export const ENGINE_ROLES = ['tick', 'run'] as const
export type EngineRole = (typeof ENGINE_ROLES)[number]

/** One process taking part. */
export interface InstanceInfo {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly app?: string
  readonly release?: string
  /** Names the set of schedules that its code declares. */
  readonly declarations?: string
  /** The runtime's zone data, so that differing ones can be told. */
  readonly zoneData: string
  /** What its own clock said when it joined, so that wrong ones can be told. */
  readonly clockAt?: number
  readonly jobs: readonly JobInfo[]
  /** The sinks that it delivers to. */
  readonly sinks?: readonly SinkInfo[]
}

/** A sink as data. */
export interface SinkInfo {
  readonly name: string
  readonly ordered?: boolean
}

/** A job as data: what others need to know of it without its code. */
export interface JobInfo {
  readonly name: string
  readonly exclusive?: KeyRule
}

export interface Instance extends InstanceInfo {
  readonly joinedAt: number
  readonly beatAt: number
  readonly expiresAt: number
}

/** An attempt as its instance knows it. */
export interface AttemptRef {
  readonly run: string
  readonly token: number
}

export interface BeatRequest {
  readonly instance: string
  readonly leaseMs: number
  /** Everything that the instance runs. */
  readonly attempts: readonly AttemptRef[]
  /** Every claim of the instance up to this number has been answered, or has failed. */
  readonly claimsSettled: number
}

export interface BeatResult {
  /** False when the instance was declared dead: it must abort everything and join anew. */
  readonly alive: boolean
  /** Attempts that are no longer its own. */
  readonly lost: readonly string[]
  /** Attempts that somebody asked to cancel. */
  readonly cancel: readonly string[]
  readonly now: number
}
