/**
 * Stopping on signals, for all instances of the process together: when the last has stopped, the signal does what it
 * would have done without us. A second signal is not held up.
 */
export const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGBREAK', 'SIGUSR1', 'SIGUSR2'] as const
export type StopSignal = (typeof STOP_SIGNALS)[number]

type Stop = () => Promise<void>

const stops = new Map<StopSignal, Set<Stop>>()

/** Stops when the signal comes; the returned function takes that back. */
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
  // A host that listens too was told by the runtime, and ends the process as it likes.
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
}
