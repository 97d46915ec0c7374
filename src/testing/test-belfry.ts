/**
 * A Belfry for tests, on the memory store and a manual clock. Days pass in milliseconds, and `crash` is a kill -9.
 *
 *     const { belfry, advance, runs } = createTestBelfry({ now: '2026-03-01T08:59:00Z' })
 *     belfry.job('digest', { run: sendDigest })
 *     belfry.schedule('digest/eu', { cron: '0 9 * * *', job: 'digest' })
 *     await belfry.start()
 *     await advance('1d')
 *     expect(await runs('digest/eu')).toHaveLength(1)
 */
import type { BelfryOptions } from '../api/belfry-options.js'
import { type Belfry, createBelfry } from '../belfry.js'
import { checkOptions } from '../core/checks/known-options.js'
import { silentLogger } from '../core/logger.js'
import type { Run } from '../core/runs/run.js'
import type { Store } from '../core/store.js'
import { memory } from '../stores/memory/index.js'
import { type Duration, durationMs } from '../time/duration.js'
import { type Instant, instantMs } from '../time/instant.js'
import { type ManualClock, manualClock } from './manual-clock.js'
import { SimulatedProcess } from './simulated-process.js'

export type TestOptions = Partial<Omit<BelfryOptions, 'store' | 'clock'>> & {
  /** The time at the start. Default 2026-01-01T00:00:00Z. */
  readonly now?: Instant
}

export interface TestBelfry {
  readonly belfry: Belfry
  readonly clock: ManualClock
  readonly store: Store
  /** Makes another instance on the same store and clock. The test defines its jobs and starts it. */
  instance(options?: Omit<TestOptions, 'now'>): Belfry
  /** Lets time pass. Timers fire in order; when this resolves, the code that they started has run. */
  advance(duration: Duration): Promise<void>
  /** The runs of a schedule or of a job, oldest first. */
  runs(scheduleOrJob: string): Promise<readonly Run[]>
  /** Kills an instance as kill -9 does. Default the first one. */
  crash(instance?: Belfry): void
  /** Lets the leases of crashed instances expire, so that other instances take over. */
  expireLeases(): Promise<void>
}

/**
 * The lease and the poll interval are long, so that a virtual day has few beats and polls. The memory store's hints suffice.
 */
const LEASE_MS = 600_000
const POLL_MS = 3_600_000
const PAGE = 10_000
/** The history of a test is never pruned. */
const FOREVER = { maxAge: '36500d', maxRuns: 1_000_000_000 }

export function createTestBelfry(given: TestOptions = {}): TestBelfry {
  if (typeof given !== 'object' || given === null) checkOptions(given, [], 'createTestBelfry()')
  const { now = '2026-01-01T00:00:00Z', ...options } = given
  const clock = manualClock(instantMs(now))
  const store = memory({ clock })
  const processes = new Map<Belfry, SimulatedProcess>()
  const leaseMs = options.lease === undefined ? LEASE_MS : durationMs(options.lease)
  const instance = (own: Omit<TestOptions, 'now'> = {}): Belfry => {
    const simulated = new SimulatedProcess(store, clock)
    const made = createBelfry({
      ...{ lease: leaseMs, poll: POLL_MS, history: FOREVER, logger: silentLogger, ...options, ...own },
      store: simulated.store,
      clock: simulated.clock,
    })
    // A killed instance cannot stop, so `stop` must not wait for it.
    const stop = made.stop.bind(made)
    made.stop = async (how) => {
      if (!simulated.isKilled) await stop(how)
    }
    processes.set(made, simulated)
    return made
  }
  const belfry = instance()
  return {
    belfry,
    clock,
    store,
    instance,
    advance: (duration) => clock.advance(durationMs(duration)),
    runs: (scheduleOrJob) => runsOf(store, scheduleOrJob),
    crash: (crashed = belfry) => processes.get(crashed)?.kill(),
    expireLeases: () => clock.advance(leaseMs * 1.5),
  }
}

async function runsOf(store: Store, name: string): Promise<readonly Run[]> {
  const ofSchedule = await allRuns(store, { schedule: name })
  return ofSchedule.length > 0 ? ofSchedule : allRuns(store, { job: name })
}

async function allRuns(store: Store, query: { schedule?: string; job?: string }): Promise<readonly Run[]> {
  const runs: Run[] = []
  let after: string | undefined
  do {
    const page = await store.runs.list({ ...query, limit: PAGE, ...(after === undefined ? {} : { after }) })
    runs.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return runs.reverse()
}
