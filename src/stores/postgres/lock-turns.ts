/**
 * What a process wants of a name that several in it wait for goes one step after the other: they would wait for each other
 * in the database anyway. What comes meanwhile shares the next step, so that a lock which is handed round among many costs
 * one transaction each time: one gives it back, and takes a place in the same breath as the next gives it back.
 *
 * A step that fails may have been done: all who shared it are told so, as each would have been alone.
 */
import { setImmediate } from 'node:timers/promises'
import type { AcquireRequest, ReleaseRequest } from '../../core/lease.js'
import type { Turn, TurnTaken } from './take-turn.js'

interface Call<Request> {
  readonly request: Request
  readonly resolve: (taken: TurnTaken) => void
  readonly reject: (error: unknown) => void
}

interface Queue {
  readonly releases: Call<ReleaseRequest>[]
  places: Call<AcquireRequest>[]
}

export class LockTurns {
  readonly #take: (turn: Turn) => Promise<TurnTaken>
  /** By name, as long as there is something to do. */
  readonly #queues = new Map<string, Queue>()

  constructor(take: (turn: Turn) => Promise<TurnTaken>) {
    this.#take = take
  }

  release(request: ReleaseRequest): Promise<TurnTaken> {
    return new Promise((resolve, reject) => {
      this.#queueOf(request.name).releases.push({ request, resolve, reject })
    })
  }

  place(request: AcquireRequest): Promise<TurnTaken> {
    return new Promise((resolve, reject) => {
      this.#queueOf(request.name).places.push({ request, resolve, reject })
    })
  }

  #queueOf(name: string): Queue {
    const known = this.#queues.get(name)
    if (known !== undefined) return known
    const queue: Queue = { releases: [], places: [] }
    this.#queues.set(name, queue)
    void this.#takeAll(name, queue)
    return queue
  }

  async #takeAll(name: string, queue: Queue): Promise<void> {
    do {
      // Who was just told that it is his turn may give the lock back at once: that joins.
      await setImmediate()
      await this.#takeOne(name, queue)
    } while (queue.releases.length + queue.places.length > 0)
    this.#queues.delete(name)
  }

  async #takeOne(name: string, queue: Queue): Promise<void> {
    const release = queue.releases.shift()
    const { places } = queue
    queue.places = []
    const calls = release === undefined ? places : [release, ...places]
    try {
      const requests = places.map(({ request }) => request)
      const taken = await this.#take({ name, release: release?.request, places: requests })
      for (const { resolve } of calls) resolve(taken)
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  }
}
