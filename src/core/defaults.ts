/**
 * Every default and every limit that users meet. Options, help texts, the HTTP API and the documentation derive from
 * this file or are compared with it by `test/architecture/defaults.test.ts`. Names are those of the options; durations
 * are milliseconds.
 */
import type { Backlog, MissedPolicy, OnFinish, Overlap, WhenBusy } from './policies.js'
import type { BACKOFFS } from './runs/retry-policy.js'
import type { Keep, Origin } from './runs/run.js'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

const LEASE_MS = 15 * SECOND_MS

/** Ticks come again, so a tick whose key is busy is skipped. All other runs were accepted from a caller, and wait. */
const WHEN_BUSY_OF: Readonly<Record<Origin, WhenBusy>> = {
  tick: 'skip',
  trigger: 'wait',
  backfill: 'wait',
  enqueue: 'wait',
}

/** The value of each option that is left out. */
export const DEFAULTS = {
  /** `createBelfry` */
  instance: {
    leaseMs: LEASE_MS,
    /** The part of a lease or TTL after which it is renewed. */
    heartbeatShare: 1 / 4,
    maxBlockMs: 5 * MINUTE_MS,
    pollMs: SECOND_MS,
    lookaheadMs: SECOND_MS,
    graceMs: 10 * SECOND_MS,
    stopGraceMs: 10 * SECOND_MS,
    batch: 1_000,
    concurrency: 10,
    history: { maxAgeMs: 7 * DAY_MS, maxRuns: 1_000_000 },
    threads: { idleMs: 30 * SECOND_MS },
  },
  schedule: {
    overlap: 'allow' as Overlap,
    missed: { policy: 'latest' as MissedPolicy, max: 1_000 },
    backlog: 'drop' as Backlog,
    priority: 0,
    keep: 'all' as Keep,
    onFinish: 'remove' as OnFinish,
  },
  backfill: { overlap: 'queue-all' as Overlap },
  job: {
    timeoutMs: HOUR_MS,
    keep: 'all' as Keep,
    exclusive: { limit: 1, whenBusy: WHEN_BUSY_OF },
    retry: { attempts: 3, maxDelayMs: DAY_MS },
  },
  /** The delivery options of a sink. */
  sink: {
    concurrency: 4,
    batch: 100,
    lingerMs: 0,
    timeoutMs: 30 * SECOND_MS,
    /** Delays of 1 s, 2 s, 4 s … up to an hour: about 14 hours in all. */
    retry: { attempts: 25, maxDelayMs: HOUR_MS },
  },
  retry: { backoff: 'exponential' as (typeof BACKOFFS)[number], delayMs: SECOND_MS },
  lock: { ttlMs: LEASE_MS, waitMs: 0, permits: 1 },
  list: { limit: 100 },
  preview: { count: 5 },
  /** `createServer`, and `belfry serve` where it has the same settings. */
  server: {
    ...{ bodyBytes: 1_048_576, bodyMs: 30 * SECOND_MS, batch: 1_000 },
    ...{ requestsPerSecond: 2_000, cpuMsPerSecond: 500 },
  },
  /** `belfry serve` alone. */
  serve: {
    store: 'belfry.db',
    host: '127.0.0.1',
    port: 7_420,
    graceMs: 10 * SECOND_MS,
    requestsPerSecondOfAddress: 5_000,
    maxConnections: 2_000,
    wrongTokensPerSecond: 2,
  },
  /** `belfry crontab` */
  crontab: { missed: 'skip' as MissedPolicy, timeoutMs: 7 * DAY_MS, graceMs: 10 * SECOND_MS },
} as const

/** The largest values that are accepted. */
export const LIMITS = {
  /** Of a payload and of a result, as JSON. */
  payloadBytes: 256 * 1_024,
  jsonDepth: 64,
  nameLength: 255,
  /** A priority lies between minus this and plus this. */
  priority: 1_000_000,
  /** Of a lock and of an exclusive key. */
  permits: 1_000_000,
  /** `times` of a schedule. */
  times: 1_000_000_000,
  /** `missed.max` */
  missed: 10_000,
  backfillTicks: 100_000,
  previewTicks: 100_000,
  /** A run whose instances died this often ends as `LOST` when the next one dies. */
  takeovers: 3,
  backoffMs: DAY_MS,
} as const
