import { type Hint, tell } from '../../core/hint.js'
import type { WakeListener } from '../../core/store.js'

/** Who listens to hints in this process. They go out after the operation, once for all that happened in one turn. */
export class Listeners {
  readonly #listening = new Set<WakeListener>()
  readonly #wakes = new Set<Hint>()

  subscribe(listener: WakeListener): () => void {
    // Each subscription is its own, even of the same function.
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
