import { type Hint, tell } from '../../../core/connection/hint.js'
import type { WakeListener } from '../../../core/store.js'

/** Hints for the listeners in this process: after the commit, and each once for all that happened in one turn. */
export class Listeners {
  readonly #listening = new Set<WakeListener>()
  readonly #wakes = new Set<Hint>()

  subscribe(listener: WakeListener): () => void {
    // The same function may subscribe twice: each subscription has an entry of its own.
    const own: WakeListener = (wake, holder) => listener(wake, holder)
    this.#listening.add(own)
    return () => {
      this.#listening.delete(own)
    }
  }

  announce(wakes: ReadonlySet<Hint>): void {
    if (wakes.size === 0 || this.#listening.size === 0) return
    if (this.#wakes.size === 0) queueMicrotask(() => this.#flush())
    for (const wake of wakes) this.#wakes.add(wake)
  }

  #flush(): void {
    const hints = [...this.#wakes]
    this.#wakes.clear()
    for (const listener of [...this.#listening]) for (const hint of hints) tell(listener, hint)
  }
}
