/**
 * Stops all instances of the process on a signal. When the last instance has stopped, the signal takes its usual
 * effect. A second signal takes its effect at once.
 */
export const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGBREAK', 'SIGUSR1', 'SIGUSR2'] as const
export type StopSignal = (typeof STOP_SIGNALS)[number]

type Stop = () => Promise<void>

const stops = new Map<StopSignal, Set<Stop>>()

/** Calls `stop` when the signal arrives; the returned function removes the listener. */
export function stopOn(signal: StopSignal, stop: Stop): () => void {
  const known = stops.get(signal)
  const group = known ?? new Set<Stop>()
  group.add(stop)
  if (known === undefined) {
    stops.set(signal, group)
    process.once(signal, stopAll)
  }
  return () => {
    group.delete(stop)
    if (group.size > 0 || stops.get(signal) !== group) return
    stops.delete(signal)
    process.removeListener(signal, stopAll)
  }
}

async function stopAll(signal: StopSignal): Promise<void> {
  const group = stops.get(signal) ?? new Set()
  stops.delete(signal)
  await Promise.allSettled([...group].map((stop) => stop()))
  // If the app has a listener for the signal, that listener decides how the process ends.
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
}
