/** What a seed decides at the start: the number of instances, the rates of faults, and the jobs. */
import type { ExclusiveOption, JobOptions } from '../../src/api/jobs/job-options.js'
import type { Keep } from '../../src/core/runs/run.js'
import type { FaultRates } from '../../src/testing/faulty-store.js'
import type { Random } from '../../src/testing/random.js'

export interface Payload {
  readonly k: string
  readonly n: number
}

export interface JobSettings {
  readonly name: string
  readonly options: Omit<JobOptions<Payload>, 'run'>
  /** The shortest and longest duration of the handler. */
  readonly minMs: number
  readonly maxMs: number
  /** The probability that an attempt throws. */
  readonly fails: number
  /** Whether the handler ends as soon as its signal fires. */
  readonly obeys: boolean
}

export interface Settings {
  readonly startAt: number
  /** How long faults are injected. */
  readonly faultyMs: number
  readonly slots: number
  readonly leaseMs: number
  readonly pollMs: number
  readonly lookaheadMs: number
  readonly graceMs: number
  readonly jobs: readonly [JobSettings, ...JobSettings[]]
  readonly schedules: number
  readonly faults: FaultRates
  /** The largest clock skew of an instance. */
  readonly skewMs: number
  /** Whether history is so short that it is pruned constantly. */
  readonly prunes: boolean
  /** The average time between two random actions. */
  readonly actionMs: number
}

const HOUR_MS = 3_600_000

export function drawSettings(random: Random): Settings {
  const [first, ...more] = Array.from({ length: random.integer(2, 5) }, (_, at) => drawJob(random, at))
  return {
    startAt: Date.UTC(2026, 2, 1, 11, 58) + random.integer(0, 999),
    faultyMs: random.integer(30_000, 110_000),
    slots: random.chance(0.12) ? random.integer(8, 20) : random.integer(1, 6),
    leaseMs: random.pick([3_000, 6_000, 15_000]),
    pollMs: random.pick([1_000, 1_000, 3_000]),
    lookaheadMs: random.pick([0, 1_000, 1_000, 3_000]),
    graceMs: random.pick([2_000, 10_000]),
    jobs: [first ?? drawJob(random, 0), ...more],
    schedules: random.integer(1, 7),
    faults: drawFaults(random),
    skewMs: random.pick([0, 5_000, 6 * HOUR_MS]),
    prunes: random.chance(0.2),
    actionMs: random.pick([700, 2_000, 5_000]),
  }
}

function drawFaults(random: Random): FaultRates {
  if (random.chance(0.2)) return {}
  const share = random.pick([0.01, 0.03, 0.1])
  return {
    delay: random.chance(0.6) ? share : 0,
    maxDelayMs: random.pick([50, 500, 4_000, 12_000]),
    drop: random.chance(0.6) ? share : 0,
    failAfterApply: random.chance(0.8) ? share : 0,
    duplicate: random.chance(0.6) ? share : 0,
    loseHint: random.pick([0, 0.1, 1]),
  }
}

function drawJob(random: Random, at: number): JobSettings {
  const [minMs, maxMs] = random.pick([
    [0, 0],
    [0, 100],
    [100, 2_000],
    [2_000, 20_000],
  ])
  const exclusive = drawExclusive(random)
  return {
    name: `job${at}`,
    minMs,
    maxMs,
    fails: random.pick([0, 0, 0.1, 0.5]),
    obeys: random.chance(0.7),
    options: {
      retry: { attempts: random.integer(1, 4), backoff: 'fixed', delay: random.pick([0, 300, 2_000]) },
      keep: random.pick<Keep>(['all', 'all', 'failures', 'none']),
      ...(random.chance(0.3) ? { timeout: random.pick([1_000, 4_000, 10_000]) } : {}),
      ...(random.chance(0.2) ? { concurrency: random.integer(1, 3) } : {}),
      ...(exclusive === undefined ? {} : { exclusive }),
    },
  }
}

function drawExclusive(random: Random): ExclusiveOption<Payload> | undefined {
  if (random.chance(0.35)) return undefined
  const by = random.pick([undefined, ['k' as const], ({ k }: Payload) => k])
  return {
    whenBusy: random.chance(0.6) ? 'wait' : 'skip',
    limit: random.chance(0.7) ? 1 : random.integer(2, 3),
    ...(by === undefined ? {} : { by }),
    ...(random.chance(0.2) ? { name: 'shared' } : {}),
  }
}

/** Whether the job's handler is slow. A schedule of such a job ticks seldom, so that its runs do not pile up. */
export function isSlow({ maxMs }: JobSettings): boolean {
  return maxMs > 2_000
}
