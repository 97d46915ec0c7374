import { type Hint, tell } from '../../../core/connection/hint.js'
import type { WakeListener } from '../../../core/store.js'

/** Hints go out after the operation, and each once for all that happened in one turn. */
export function listenersOf(wakes: Set<Hint>) {
  const listening = new Set<WakeListener>()
  let pending = false

  function flush(): void {
    pending = false
    const hints = [...wakes]
    wakes.clear()
    for (const listener of [...listening]) for (const hint of hints) tell(listener, hint)
  }

  return {
    announce(): void {
      if (pending || wakes.size === 0) return
      pending = true
      queueMicrotask(flush)
    },
    subscribe(listener: WakeListener): () => void {
      // The same function may subscribe twice: each subscription has an entry of its own.
      const own: WakeListener = (wake, holder) => listener(wake, holder)
      listening.add(own)
      return () => {
        listening.delete(own)
      }
    },
  }
}
