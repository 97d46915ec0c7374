/**
 * A store behind an unreliable network: calls are late, lost or delivered twice, or their answer is lost. The store
 * contract still holds. The same seed of `random` gives the same sequence of faults.
 */
import { type Clock, sleep } from '../core/clock.js'
import { failure } from '../core/errors.js'
import type { NewRun } from '../core/runs/run.js'
import type { Store } from '../core/store.js'
import type { Random } from './random.js'

/** Probabilities from 0 to 1, for each call. */
export interface FaultRates {
  /** The call waits up to `maxDelayMs` before it is executed, and again before its answer. */
  readonly delay?: number
  readonly maxDelayMs?: number
  /** The call is lost: it throws, and the store did not execute it. */
  readonly drop?: number
  /** The answer is lost: the call throws, but the store executed it. */
  readonly failAfterApply?: number
  /** The store executes the call twice, if the contract allows that. */
  readonly duplicate?: number
  readonly loseHint?: number
}

export interface FaultyOptions {
  readonly random: Random
  readonly clock: Clock
  readonly faults: FaultRates
}

export interface FaultyStore extends Store {
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

  const { supports, schedules, runs, leases, instances, records, open, close, subscribe, onLost, onWarning, ...own } =
    store
  return {
    ...{ supports, open, close },
    ...(onLost === undefined ? {} : { onLost }),
    ...(onWarning === undefined ? {} : { onWarning }),
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
 * Whether a repeated call changes nothing more. There are two exceptions: an enqueue without a dedupe key makes a
 * second run, and a second reset takes the lease from the waiter that the first one handed it to.
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
