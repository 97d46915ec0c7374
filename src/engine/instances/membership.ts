import { randomUUID } from 'node:crypto'
import type { InstanceInfo } from '../../core/instances/instance.js'
import type { Store } from '../../core/store.js'
import type { Events } from '../events.js'

/** This process as an instance of the store. It gets a new id whenever it rejoins. */
export class Membership {
  readonly #store: Store
  readonly #events: Events
  readonly #leaseMs: number
  readonly #describe: () => Omit<InstanceInfo, 'id'>
  #id: string = randomUUID()
  #joined = false

  constructor(store: Store, events: Events, leaseMs: number, describe: () => Omit<InstanceInfo, 'id'>) {
    this.#store = store
    this.#events = events
    this.#leaseMs = leaseMs
    this.#describe = describe
  }

  get id(): string {
    return this.#id
  }

  get joined(): boolean {
    return this.#joined
  }

  /** Returns the store's time. */
  async join(): Promise<number> {
    const id = this.#id
    const { now } = await this.#store.instances.join({ id, ...this.#describe() }, this.#leaseMs)
    this.#joined = id === this.#id
    this.#events.emit('instance:joined', { instance: id })
    return now
  }

  /** Takes a new id. The keeper joins under it with its next step. */
  renew(): void {
    this.#id = randomUUID()
    this.#joined = false
  }

  async leave(): Promise<void> {
    if (!this.#joined) return
    this.#joined = false
    await this.#store.instances.leave(this.#id)
  }
}
