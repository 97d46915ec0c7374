/** A new store for one contract test, with short forms of its operations. */
import type { Json } from '../../core/checks/json.js'
import type { AcquireRequest, Lease } from '../../core/locks/lease.js'
import type { RunKey } from '../../core/runs/key.js'
import type { NewRun, Outcome, Run } from '../../core/runs/run.js'
import { plan } from '../../core/schedules/plan.js'
import type { Schedule, ScheduleDefinition } from '../../core/schedules/schedule.js'
import type {
  AdvanceRequest,
  AdvanceResult,
  ClaimedRun,
  ClaimRequest,
  EnqueueResult,
  SettleResult,
  Store,
} from '../../core/store.js'

export interface OpenedStore {
  readonly store: Store
  /** Lets time pass on the store's clock. */
  elapse(ms: number): Promise<void>
  /** Runs one operation between the read and the write of another. Without it the tests start both at once. */
  readonly interrupt?: Interrupt
  close?(): Promise<void>
}

/**
 * Runs `operation` on another handle of the same data, and starts `meanwhile` between its read and its write. The
 * operation continues when `meanwhile` has ended or is blocked by it. Resolves when both have ended. Rejects if the
 * operation ended without a write.
 */
export type Interrupt = <Result>(
  operation: (other: Store) => Promise<Result>,
  meanwhile: () => Promise<unknown>,
) => Promise<Result>

/** One test of the contract, named by a sentence. It throws when the store breaks the promise. */
export interface ContractCase {
  readonly area: string
  readonly name: string
  run(opened: OpenedStore): Promise<void>
}

/** The tests of one part of the contract, by sentence. */
export function area(name: string, tests: Record<string, (scene: Scene) => Promise<void>>): ContractCase[] {
  return Object.entries(tests).map(([sentence, test]) => ({
    area: name,
    name: sentence,
    run: (opened) => test(new Scene(opened)),
  }))
}

/** Long enough for a slow store to do a few operations, short enough to wait for. */
export const SHORT_LEASE_MS = 600
export const LONG_LEASE_MS = 600_000
/** After this a short lease has expired. */
export const PAST_LEASE_MS = SHORT_LEASE_MS + 100
/** Names that UTF-8 and UTF-16 sort differently. Pages must leave out none of them. */
export const ODD_NAMES: readonly string[] = ['', 'a', '%', '_', '\ue000', '\uffff', '\u{1f514}', '\u{10ffff}a'].map(
  (each) => `o/${each}`,
)
const HOUR = 3_600_000

export function definition(over: Partial<ScheduleDefinition> = {}): ScheduleDefinition {
  return {
    timeline: { every: HOUR },
    target: { job: 'work' },
    payload: null,
    overlap: 'allow',
    missed: { policy: 'latest', max: 1_000, graceMs: 60_000 },
    jitterMs: 0,
    priority: 0,
    keep: 'all',
    onFinish: 'keep',
    ...over,
  }
}

export function key(name: string, over: Partial<RunKey> = {}): RunKey {
  return { name, limit: 1, whenBusy: 'wait', ...over }
}

/** Short forms of a store's operations. They are properties, so that a test can destructure them. */
export class Scene {
  readonly store: Store
  readonly elapse: (ms: number) => Promise<void>
  readonly #interrupt: Interrupt
  readonly #claims = new Map<string, number>()

  constructor({ store, elapse, interrupt = atOnce(store) }: OpenedStore) {
    this.store = store
    this.elapse = elapse
    this.#interrupt = interrupt
  }

  /** Runs `operation` on another handle, and `meanwhile` between its read and its write. */
  interrupt = <Result>(
    operation: (other: Scene) => Promise<Result>,
    meanwhile: () => Promise<unknown>,
  ): Promise<Result> => {
    return this.#interrupt((store) => operation(new Scene({ store, elapse: this.elapse })), meanwhile)
  }

  claimsOf = (instance: string): number => {
    return this.#claims.get(instance) ?? 0
  }

  join = async (
    id = 'one',
    leaseMs = LONG_LEASE_MS,
    over: { app?: string; declarations?: string } = {},
  ): Promise<void> => {
    const jobs = [{ name: 'work' }, { name: 'other' }]
    await this.store.instances.join({ id, host: 'host', pid: 1, zoneData: '2026a', jobs, ...over }, leaseMs)
  }

  beat = (instance: string, attempts: readonly ClaimedRun[], leaseMs = LONG_LEASE_MS) => {
    const listed = attempts.map(({ id, token }) => ({ run: id, token }))
    const claimsSettled = this.claimsOf(instance)
    return this.store.instances.beat({ instance, leaseMs, attempts: listed, claimsSettled })
  }

  put = async (id: string, over: Partial<ScheduleDefinition> = {}): Promise<Schedule> => {
    const [result] = await this.store.schedules.put([{ id, definition: definition(over) }])
    if (result?.schedule === undefined) throw new Error(`schedule ${id} was not written: ${result?.outcome}`)
    return result.schedule
  }

  /** Puts a schedule with ticks at these milliseconds from now. Those in the past are due at once. */
  putTicks = async (
    id: string,
    offsets: readonly number[],
    over: Partial<ScheduleDefinition> = {},
  ): Promise<number[]> => {
    const now = await this.store.now()
    const instants = offsets.map((offset) => now + offset)
    await this.put(id, { timeline: { at: instants }, ...over })
    return instants
  }

  advance = (over: Partial<AdvanceRequest> = {}): Promise<AdvanceResult> => {
    return this.store.schedules.advance({ limit: 100, lookaheadMs: 0, plan, ...over })
  }

  schedule = async (id: string): Promise<Schedule> => {
    const schedule = await this.store.schedules.get(id)
    if (schedule === undefined) throw new Error(`schedule ${id} is gone`)
    return schedule
  }

  /** The runs of a schedule, in order of their instants. */
  runsOf = async (schedule: string): Promise<Run[]> => {
    const { items } = await this.store.runs.list({ schedule, limit: 1_000 })
    return [...items].sort((one, other) => (one.tick ?? 0) - (other.tick ?? 0))
  }

  statesOf = async (schedule: string): Promise<string[]> => {
    return (await this.runsOf(schedule)).map(({ state, reason, waitsFor }) =>
      [state, reason ?? waitsFor].filter(Boolean).join(' '),
    )
  }

  skipsOf = async (schedule: string): Promise<string[]> => {
    const ranges = await this.store.schedules.skips(schedule, 0, Number.MAX_SAFE_INTEGER, 1_000)
    return ranges.map(({ count, reason }) => `${count} ${reason}`)
  }

  tryEnqueue = async (over: Partial<NewRun> = {}): Promise<EnqueueResult> => {
    const [result] = await this.store.runs.enqueue([newRun(over)])
    if (result === undefined) throw new Error('enqueue returned nothing')
    return result
  }

  enqueue = async (over: Partial<NewRun> = {}): Promise<string> => {
    const { outcome, run } = await this.tryEnqueue(over)
    if (outcome !== 'enqueued') throw new Error(`the run was refused: ${outcome}`)
    return run
  }

  claim = async (instance = 'one', over: Partial<ClaimRequest> = {}): Promise<readonly ClaimedRun[]> => {
    return (await this.claimAll(instance, over)).runs
  }

  claimAll = (instance = 'one', over: Partial<ClaimRequest> = {}) => {
    const claim = this.claimsOf(instance) + 1
    this.#claims.set(instance, claim)
    const jobs = ['work', 'other'].map((name) => ({ name, limit: 100 }))
    return this.store.runs.claim({ instance, claim, limit: 100, jobs, sinks: [], floor: 0, ...over })
  }

  claimOne = async (instance = 'one'): Promise<ClaimedRun> => {
    const [run] = await this.claim(instance, { limit: 1 })
    if (run === undefined) throw new Error('there was nothing to claim')
    return run
  }

  settle = async (
    run: { id: string; token: number },
    outcome: Outcome = { kind: 'succeeded' },
  ): Promise<SettleResult> => {
    const [result] = await this.store.runs.settle([{ run: run.id, token: run.token, outcome }])
    if (result === undefined) throw new Error('settle returned nothing')
    return result
  }

  run = async (id: string): Promise<Run> => {
    const run = await this.store.runs.get(id)
    if (run === undefined) throw new Error(`run ${id} is gone`)
    return run
  }

  stateOf = async (id: string): Promise<string> => {
    const { state, reason, waitsFor } = await this.run(id)
    return [state, reason ?? waitsFor].filter(Boolean).join(' ')
  }

  tryAcquire = (name: string, holder: string, over: Partial<AcquireRequest> = {}) => {
    return this.store.leases.acquire({ name, holder, ttlMs: LONG_LEASE_MS, permits: 1, floor: 0, ...over })
  }

  acquire = async (name: string, holder: string, over: Partial<AcquireRequest> = {}): Promise<Lease> => {
    const result = await this.tryAcquire(name, holder, over)
    if (!result.acquired) throw new Error(`${holder} did not get ${name}`)
    return result.lease
  }
}

function atOnce(store: Store): Interrupt {
  return async (operation, meanwhile) => {
    const [result] = await Promise.all([operation(store), meanwhile()])
    return result
  }
}

export function newRun(over: Partial<NewRun> = {}): NewRun {
  return { target: { job: 'work' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all', ...over }
}

export function failed(message = 'it broke'): Outcome {
  return { kind: 'failed', error: { message } }
}

export function retryIn(delayMs: number, message = 'it broke'): Outcome {
  return { kind: 'retry', delayMs, error: { message } }
}

export function withResult(result: Json): Outcome {
  return { kind: 'succeeded', result }
}

export function ids(runs: readonly { readonly id: string }[]): string[] {
  return runs.map(({ id }) => id)
}

export function grows(tokens: readonly (number | undefined)[]): boolean {
  return tokens.every((token, at) => token !== undefined && (at === 0 || token > (tokens[at - 1] ?? 0)))
}
