/**
 * A store behind a bad network: calls are late, get lost, are delivered twice, or are done while their answer is lost.
 * What the contract promises must hold all the same, and the engine must survive it. The seed repeats every fault.
 */
import { type Clock, sleep } from '../core/clock.js'
import { failure } from '../core/errors.js'
import type { NewRun } from '../core/run.js'
import type { Store } from '../core/store.js'
import type { Random } from './random.js'

/** Chances from 0 to 1, for each call by itself. */
export interface FaultRates {
  /** The call takes up to `maxDelayMs`, before and after it is done. */
  readonly delay?: number
  readonly maxDelayMs?: number
  /** The call never arrives: it throws and nothing was done. */
  readonly drop?: number
  /** The call was done, and its answer is lost: it throws all the same. */
  readonly failAfterApply?: number
  /** The call arrives twice, where the contract says that this is safe. */
  readonly duplicate?: number
  /** A wake-up is not delivered. */
  readonly loseHint?: number
}

export interface FaultyOptions {
  readonly random: Random
  readonly clock: Clock
  readonly faults: FaultRates
}

export interface FaultyStore extends Store {
  /** Turns all faults off, and on again. */
  setFaulty(faulty: boolean): void
}

type Operation = (...args: readonly unknown[]) => Promise<unknown>

export function faultyStore(store: Store, { random, clock, faults }: FaultyOptions): FaultyStore {
  let faulty = true
  const strikes = (chance = 0) => faulty && chance > 0 && random.chance(chance)

  async function delay(): Promise<void> {
    if (strikes(faults.delay)) await sleep(clock, random.integer(1, faults.maxDelayMs ?? 100))
  }

  function through(name: string, operation: Operation): Operation {
    return async (...args) => {
      await delay()
      if (strikes(faults.drop)) throw unreachable(name, 'the call was lost')
      const answer = await operation(...args)
      if (mayRepeat(name, args) && strikes(faults.duplicate)) await operation(...args)
      await delay()
      if (strikes(faults.failAfterApply)) throw unreachable(name, 'the answer was lost')
      return answer
    }
  }

  function wrap<Group extends object>(group: Group, prefix: string): Group {
    const wrapped = Object.entries(group).map(([name, operation]: [string, Operation]) => [
      name,
      through(`${prefix}${name}`, operation),
    ])
    return Object.fromEntries(wrapped) as Group
  }

  const { supports, schedules, runs, leases, instances, records, open, close, subscribe, onLost, ...own } = store
  return {
    ...{ supports, open, close },
    ...(onLost === undefined ? {} : { onLost }),
    ...wrap(own, ''),
    schedules: wrap(schedules, 'schedules.'),
    runs: wrap(runs, 'runs.'),
    leases: wrap(leases, 'leases.'),
    instances: wrap(instances, 'instances.'),
    records: wrap(records, 'records.'),
    subscribe: (listener) =>
      subscribe((wake, holder) => {
        if (!strikes(faults.loseHint)) listener(wake, holder)
      }),
    setFaulty(on) {
      faulty = on
    },
  }
}

/**
 * Doing it again after it was done changes nothing more, with two exceptions: a run without anything that makes it
 * unique would be made twice, and a reset would take the lease from whoever the first one handed it to.
 */
function mayRepeat(name: string, args: readonly unknown[]): boolean {
  if (name === 'leases.reset') return false
  if (name !== 'runs.enqueue') return true
  const [runs] = args as readonly [readonly NewRun[]]
  return runs.every(({ dedupe, backfill }) => dedupe !== undefined || backfill !== undefined)
}

function unreachable(name: string, problem: string) {
  return failure('STORE_UNREACHABLE', `${name}: ${problem}`)
}
