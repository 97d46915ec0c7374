/** All parts of a simulation: one store, one clock, the instance slots, two operators, and the record. */

import type { BelfryOptions } from '../../src/api/belfry-options.js'
import type { Job } from '../../src/api/jobs/job.js'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { BelfryError } from '../../src/core/errors.js'
import type { Store } from '../../src/core/store.js'
import { memory } from '../../src/stores/memory/index.js'
import type { FaultRates } from '../../src/testing/faulty-store.js'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.js'
import { type Random, seededRandom } from '../../src/testing/random.js'
import { Chronicle } from './chronicle.js'
import { InstanceSlot } from './instance-slot.js'
import { recordedStore } from './recorded-store.js'
import { drawSettings, type Payload, type Settings } from './settings.js'

/** Errors that a call at the wrong time may return. */
const EXPECTED = ['STORE_UNREACHABLE', 'SCHEDULE_NOT_FOUND', 'RUN_NOT_FOUND', 'TRANSITION_REFUSED', 'VERSION_CONFLICT']

export const OUT_OF_REACH: FaultRates = { drop: 1, loseHint: 1 }

export class SimulatedCluster {
  readonly settings: Settings
  readonly clock: ManualClock
  readonly chronicle: Chronicle
  readonly store: Store
  /** Decides the actions on the cluster. */
  readonly random: Random
  /** Decides faults, and how long handlers take and whether they fail. */
  readonly faultRandom: Random
  readonly slots: readonly InstanceSlot[]
  /** Two operators without faults: one with the jobs' code, one without. */
  readonly operator: Belfry
  readonly codelessOperator: Belfry
  readonly operatorJobs = new Map<string, Job<Payload | undefined>>()
  readonly stopping = new Map<string, Promise<void>>()
  /** Until this instant, no call of any instance reaches the store. */
  outageUntil = 0
  /** From now on no fault is injected, except lost hints. */
  calm = false

  constructor(seed: number, tamper: (store: Store) => Store) {
    const seeds = seededRandom(seed)
    const fork = () => seededRandom(seeds.integer(0, 2 ** 32 - 1))
    this.settings = drawSettings(fork())
    this.random = fork()
    this.faultRandom = fork()
    this.clock = manualClock(this.settings.startAt)
    this.chronicle = new Chronicle(this.clock, this.settings.prunes)
    this.store = recordedStore(tamper(memory({ clock: this.clock })), this.chronicle)
    this.operator = createBelfry({ ...this.options(), roles: [] })
    this.codelessOperator = createBelfry({ ...this.options(), roles: [] })
    for (const { name, options } of this.settings.jobs) {
      this.operatorJobs.set(name, this.operator.job<Payload>(name, { ...options, run: () => {} }))
    }
    this.slots = Array.from({ length: this.settings.slots }, (_, at) => new InstanceSlot(this, at + 1))
  }

  options(): BelfryOptions {
    const { leaseMs, pollMs, lookaheadMs, graceMs, prunes } = this.settings
    return {
      ...{ store: this.store, clock: this.clock, lease: leaseMs, poll: pollMs, lookahead: lookaheadMs, grace: graceMs },
      ...(prunes ? { history: { maxAge: '20s', maxRuns: 30 } } : {}),
    }
  }

  /** The first slot does everything; some of the others have only some roles or jobs. */
  specialty(slot: number): Partial<BelfryOptions> {
    const kind = slot === 1 ? 1 : this.random.next()
    if (kind < 0.1) return { roles: ['run'] }
    if (kind < 0.2) return { roles: ['tick'] }
    return kind < 0.3 ? { jobs: this.settings.jobs.slice(1).map(({ name }) => name) } : {}
  }

  faults(): FaultRates {
    const { loseHint = 0, ...others } = this.settings.faults
    if (this.clock.now() < this.outageUntil) return OUT_OF_REACH
    // Hints get lost even in calm times, because nothing may depend on them.
    return this.calm ? { loseHint } : { loseHint, ...others }
  }

  /** Starts work that may fail only with the expected errors, without waiting for it. */
  attempt(what: string, work: () => Promise<unknown>): void {
    this.chronicle.note(what)
    work().then(
      () => {},
      (error: unknown) => this.noteFailure(what, error),
    )
  }

  noteFailure(what: string, error: unknown): void {
    const expected = error instanceof BelfryError && EXPECTED.includes(error.code)
    if (expected) this.chronicle.note(`${what}: ${error.message}`)
    else this.chronicle.violated('calls fail only with expected errors', `${what}: ${describe(error)}`)
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
