import { systemClock } from '../../core/clock.js'

/** Shares one answer among all callers for `freshMs`. A failed call is not kept: the next caller asks again. */
export function fresh<Answer>(ask: () => Promise<Answer>, freshMs: number): () => Promise<Answer> {
  let known: { readonly at: number; readonly answer: Promise<Answer> } | undefined
  return () => {
    const at = systemClock.monotonic()
    if (known === undefined || at - known.at > freshMs) {
      const asked = { at, answer: ask() }
      known = asked
      asked.answer.catch(() => {
        if (known === asked) known = undefined
      })
    }
    return known.answer
  }
}
