/** Shutdown of a service: the first SIGTERM or SIGINT requests it, a second one exits at once. */
import { constants } from 'node:os'

export interface ShutdownSignal {
  /** Resolves with the first signal. */
  readonly requested: Promise<NodeJS.Signals>
  readonly isRequested: boolean
  /** Exits even if timers or connections keep the process alive. */
  exit(): void
}

export function shutdownSignal(): ShutdownSignal {
  let isRequested = false
  const requested = new Promise<NodeJS.Signals>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (isRequested) process.exit(128 + constants.signals[signal])
        isRequested = true
        resolve(signal)
      })
    }
  })
  return {
    requested,
    get isRequested() {
      return isRequested
    },
    // Exits after a moment, so that a pipe can take the last output.
    exit: () => void setTimeout(() => process.exit(0), 100).unref(),
  }
}
