/** How a service ends: the first signal asks it to, a second does not wait. */
import { constants } from 'node:os'

export interface Ending {
  /** Resolves with the signal that asked. */
  readonly asked: Promise<NodeJS.Signals>
  readonly wasAsked: boolean
  /** All is done: nothing that is left over keeps the process. */
  over(): void
}

export function ending(): Ending {
  let wasAsked = false
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (wasAsked) process.exit(128 + constants.signals[signal])
        wasAsked = true
        resolve(signal)
      })
    }
  })
  return {
    asked,
    get wasAsked() {
      return wasAsked
    },
    // Output that is still on its way to a pipe gets a moment.
    over: () => void setTimeout(() => process.exit(0), 100).unref(),
  }
}
