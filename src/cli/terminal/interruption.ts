/** Ctrl-C, SIGTERM and SIGHUP as an AbortSignal. A second one exits at once. */
import { EXIT } from './exit.js'

export interface Interruption {
  readonly signal: AbortSignal
  /** Restores the default: signals end the process. */
  readonly release: () => void
}

export function interruption(): Interruption {
  const controller = new AbortController()
  const interrupt = () => {
    if (controller.signal.aborted) process.exit(EXIT.interrupted)
    controller.abort()
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, interrupt)
  return {
    signal: controller.signal,
    release: () => {
      for (const signal of signals) process.off(signal, interrupt)
    },
  }
}
