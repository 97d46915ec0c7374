import { type Clock, systemClock } from '../core/clock.js'

/** Reads at most once in `maxAgeMs`: calls in between share one result. After a failure the next call reads again. */
export function cachedRead<Value>(
  read: () => Promise<Value>,
  maxAgeMs: number,
  clock: Clock = systemClock,
): () => Promise<Value> {
  let last: { readonly at: number; readonly value: Promise<Value> } | undefined
  return () => {
    const at = clock.monotonic()
    if (last === undefined || at - last.at > maxAgeMs) {
      const asked = { at, value: read() }
      last = asked
      asked.value.catch(() => {
        if (last === asked) last = undefined
      })
    }
    return last.value
  }
}
