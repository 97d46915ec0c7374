import type { Clock } from '../clock.js'

/** The server did not answer in time. It may or may not have executed the request. */
export class Silence extends Error {
  constructor(limitMs: number) {
    super(`no answer for ${Math.round(limitMs)} ms`)
  }
}

const PARTS = 4

/** Resolves to the answer, or rejects with a `Silence` after the limit. */
export function inTime<Answer>(clock: Clock, limitMs: number, answer: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const cancel = afterLimit(clock, limitMs, () => reject(new Silence(limitMs)))
    answer.then(
      (value) => {
        cancel()
        resolve(value)
      },
      (error: unknown) => {
        cancel()
        reject(error)
      },
    )
  })
}

/**
 * Calls back when a limit for an answer has passed, unless it is cancelled. While the event loop is blocked, requests are not
 * sent and answers are not read. So the limit passes in parts, and a block takes one of them, however long it lasts. The
 * answers that arrived during a part are read before the next one starts.
 */
export function afterLimit(clock: Clock, limitMs: number, act: () => void, parts = PARTS): () => void {
  let isCancelled = false
  let cancel = clock.after(limitMs / PARTS, () =>
    setImmediate(() => {
      if (isCancelled) return
      if (parts === 1) return act()
      cancel = afterLimit(clock, limitMs, act, parts - 1)
    }),
  )
  return () => {
    isCancelled = true
    cancel()
  }
}
