/**
 * Makes an instance mortal. Everything that it does to the world goes through its store and its clock; cutting both is
 * a kill -9, holding both is a SIGSTOP, as far as anybody else can tell.
 */
import type { Clock } from '../core/clock.js'
import type { Store } from '../core/store.js'

export class Lifeline {
  readonly store: Store
  readonly clock: Clock
  #state: 'alive' | 'held' | 'cut' = 'alive'
  #resumed: Promise<void> = Promise.resolve()
  #resume = () => {}
  /** Timers that came due while held. */
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

  get isCut(): boolean {
    return this.#state === 'cut'
  }

  /** kill -9: nothing that it starts reaches the store, and no timer of it fires. */
  cut(): void {
    this.#state = 'cut'
    this.#late = []
  }

  /** SIGSTOP: what it does is held up until it is resumed. */
  hold(): void {
    if (this.#state !== 'alive') return
    this.#state = 'held'
    this.#resumed = new Promise((resolve) => {
      this.#resume = resolve
    })
  }

  /** SIGCONT. */
  resume(): void {
    if (this.#state !== 'held') return
    this.#state = 'alive'
    this.#resume()
    for (const callback of this.#late.splice(0)) callback()
  }

  #fire(callback: () => void): void {
    if (this.#state === 'alive') callback()
    else if (this.#state === 'held') this.#late.push(callback)
  }

  async #through<T>(operation: () => Promise<T>): Promise<T> {
    await this.#gate()
    const result = await operation()
    await this.#gate()
    return result
  }

  async #gate(): Promise<void> {
    if (this.#state === 'held') await this.#resumed
    if (this.#state === 'cut') await new Promise(() => {})
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
