import type { KeyRule } from '../runs/key.js'

/** `tick` records ticks, `run` starts runs. */
export const ENGINE_ROLES = ['tick', 'run'] as const
export type EngineRole = (typeof ENGINE_ROLES)[number]

/** An instance is a process that uses the store. This is how it describes itself when it joins. */
export interface InstanceInfo {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly app?: string
  readonly release?: string
  /** Names the set of schedules that its code declares. */
  readonly declarations?: string
  /** The version of the runtime's zone data. `belfry doctor` warns when instances differ. */
  readonly zoneData: string
  /** Its own clock when it joined, to measure clock skew. */
  readonly clockAt?: number
  readonly jobs: readonly JobInfo[]
  readonly sinks?: readonly SinkInfo[]
}

/** The parts of a sink that other instances need without its code. */
export interface SinkInfo {
  readonly name: string
  readonly ordered?: boolean
}

/** The parts of a job that other instances need without its code. */
export interface JobInfo {
  readonly name: string
  readonly exclusive?: KeyRule
}

export interface Instance extends InstanceInfo {
  readonly joinedAt: number
  readonly beatAt: number
  readonly expiresAt: number
}

/** An attempt: a run and the fencing token of its claim. */
export interface AttemptRef {
  readonly run: string
  readonly token: number
}

export interface BeatRequest {
  readonly instance: string
  readonly leaseMs: number
  /** All attempts that the instance runs. */
  readonly attempts: readonly AttemptRef[]
  /** Every claim of the instance up to this number has been answered, or has failed. */
  readonly claimsSettled: number
}

export interface BeatResult {
  /** False when the store declared the instance dead: it must abort all its attempts and rejoin under a new id. */
  readonly alive: boolean
  /** Runs of the request that other instances have taken over. */
  readonly lost: readonly string[]
  /** Runs of the request that were asked to cancel. */
  readonly cancel: readonly string[]
  /**
   * When the store heard of a living instance before this beat. If that is earlier than the store has answered to the
   * instance, it has lost its last writes. A store of several servers answers for the first of them.
   */
  readonly lastBeatAt?: number
  readonly now: number
}
