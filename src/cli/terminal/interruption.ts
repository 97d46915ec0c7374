/** Ctrl-C and SIGTERM as a signal to what is under way. The second one does not wait. */
import { EXIT } from './exit.js'

export interface Interruption {
  readonly signal: AbortSignal
  /** From here on signals end the process as they do by default. */
  readonly over: () => void
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
    over: () => {
      for (const signal of signals) process.off(signal, interrupt)
    },
  }
}
