/**
 * Lets a test kill or suspend one instance of several in the same process. An instance acts only through its store and
 * its clock. When both block it, other instances see the same as after a kill -9 or a SIGSTOP.
 */
import type { Clock } from '../core/clock.js'
import type { Store } from '../core/store.js'

export class SimulatedProcess {
  readonly store: Store
  readonly clock: Clock
  #state: 'alive' | 'suspended' | 'killed' = 'alive'
  #resumed: Promise<void> = Promise.resolve()
  #resume = () => {}
  /** Timers that came due while it was suspended. */
  #late: (() => void)[] = []

  constructor(store: Store, clock: Clock) {
    this.clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after: (delayMs, callback) => clock.after(delayMs, () => this.#fire(callback)),
    }
    const { onLost } = store
    const part = <Part extends object>(area: Part): Part => this.#gated(area)
    this.store = {
      supports: store.supports,
      schedules: part(store.schedules),
      runs: part(store.runs),
      leases: part(store.leases),
      instances: part(store.instances),
      records: part(store.records),
      open: () => store.open(),
      close: async () => {},
      now: () => this.#through(() => store.now()),
      subscribe: (listener) => store.subscribe((wake, holder) => this.#fire(() => listener(wake, holder))),
      ...(onLost === undefined ? {} : { onLost: (listener) => onLost((why) => this.#fire(() => listener(why))) }),
      freeze: (note) => this.#through(() => store.freeze(note)),
      thaw: () => this.#through(() => store.thaw()),
      frozen: () => this.#through(() => store.frozen()),
    }
  }

  get isKilled(): boolean {
    return this.#state === 'killed'
  }

  /** Acts like kill -9: no further call reaches the store, and no timer fires. */
  kill(): void {
    this.#state = 'killed'
    this.#late = []
  }

  /** Acts like SIGSTOP: calls and timers wait for `resume`. */
  suspend(): void {
    if (this.#state !== 'alive') return
    this.#state = 'suspended'
    this.#resumed = new Promise((resolve) => {
      this.#resume = resolve
    })
  }

  /** Acts like SIGCONT. */
  resume(): void {
    if (this.#state !== 'suspended') return
    this.#state = 'alive'
    this.#resume()
    for (const callback of this.#late.splice(0)) callback()
  }

  #fire(callback: () => void): void {
    if (this.#state === 'alive') callback()
    else if (this.#state === 'suspended') this.#late.push(callback)
  }

  async #through<T>(operation: () => Promise<T>): Promise<T> {
    await this.#gate()
    const result = await operation()
    await this.#gate()
    return result
  }

  async #gate(): Promise<void> {
    if (this.#state === 'suspended') await this.#resumed
    if (this.#state === 'killed') await new Promise(() => {})
  }

  #gated<Part extends object>(part: Part): Part {
    return new Proxy(part, {
      get: (target, name, receiver) => {
        const member: unknown = Reflect.get(target, name, receiver)
        if (typeof member !== 'function') return member
        return (...args: unknown[]) => this.#through(() => Reflect.apply(member, target, args) as Promise<unknown>)
      },
    })
  }
}
