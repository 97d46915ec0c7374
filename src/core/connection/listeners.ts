import type { WakeListener } from '../store.js'
import { type Hint, tell } from './hint.js'

/** Passes hints to the subscribers in this process. The hints of one turn of the event loop are sent together, each once. */
export class Listeners {
  readonly #listeners = new Set<WakeListener>()
  readonly #hints = new Set<Hint>()

  subscribe = (listener: WakeListener): (() => void) => {
    // A function that subscribes twice has two subscriptions.
    const own: WakeListener = (wake, holder) => listener(wake, holder)
    this.#listeners.add(own)
    return () => {
      this.#listeners.delete(own)
    }
  }

  announce = (hints: Iterable<Hint>): void => {
    const before = this.#hints.size
    for (const hint of hints) this.#hints.add(hint)
    if (before === 0 && this.#hints.size > 0) queueMicrotask(() => this.#flush())
  }

  #flush(): void {
    const hints = [...this.#hints]
    this.#hints.clear()
    for (const listener of [...this.#listeners]) for (const hint of hints) tell(listener, hint)
  }
}
