/**
 * Which state of a run may follow which.
 *
 *     waiting ⇄ ready → running → succeeded | failed | cancelled
 *     waiting | ready → skipped | cancelled
 *     running → ready                                  retry, takeover, release at stop
 *     running → waiting                                the same, while its key or its schedule is busy
 *     ready → failed                                   its instances died too often while they ran it
 *     failed | cancelled | skipped → ready | waiting   retried by hand
 *
 * `docs/architecture.md` has the same diagram; a test compares both with the table.
 */
import { failure } from '../errors.js'
import type { RunState } from './run.js'

const ALLOWED: Readonly<Record<RunState, readonly RunState[]>> = {
  waiting: ['ready', 'skipped', 'cancelled'],
  ready: ['waiting', 'running', 'skipped', 'cancelled', 'failed'],
  running: ['succeeded', 'failed', 'cancelled', 'ready', 'waiting'],
  succeeded: [],
  failed: ['ready', 'waiting'],
  cancelled: ['ready', 'waiting'],
  skipped: ['ready', 'waiting'],
}

export function mayBecome(from: RunState, to: RunState): boolean {
  return ALLOWED[from].includes(to)
}

/**
 * Moves a run that a store holds to another state. A transition that is not in the diagram is a bug, and throws. A run may stay
 * in its state: a new one is ready, and a waiting one may change what it waits for.
 */
export function become(run: { readonly id: string | number; state: RunState }, to: RunState): void {
  if (run.state !== to && !mayBecome(run.state, to)) {
    throw failure('TRANSITION_REFUSED', `run ${run.id} is ${run.state} and cannot become ${to}`)
  }
  run.state = to
}
