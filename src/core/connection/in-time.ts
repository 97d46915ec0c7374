import type { Clock } from '../clock.js'

/** The server did not answer in time. It may or may not have executed the request. */
export class Silence extends Error {
  constructor(limitMs: number) {
    super(`no answer for ${Math.round(limitMs)} ms`)
  }
}

/**
 * Resolves to the answer, or rejects with a `Silence` after the limit. After a blocked event loop timers run before sockets
 * are read, so the rejection waits one turn: an answer that has already arrived counts.
 */
export function inTime<Answer>(clock: Clock, limitMs: number, answer: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limitMs, () => setImmediate(() => reject(new Silence(limitMs))))
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
