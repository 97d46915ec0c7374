import type { Clock } from './clock.js'

/** The other end gave no answer in time. Nobody knows what it did. */
export class Silence extends Error {
  constructor(limitMs: number) {
    super(`no answer for ${Math.round(limitMs)} ms`)
  }
}

/**
 * The answer, or a `Silence` when it does not come in time. A process whose event loop was blocked finds its timers due
 * before it has read what arrived meanwhile, so what has arrived is read before the answer counts as missing.
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
