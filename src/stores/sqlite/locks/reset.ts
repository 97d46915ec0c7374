import type { Tx } from '../connection/tx.js'
import { runById, takeOver } from '../runs/transitions.js'
import { holdersOf } from './acquire.js'
import { dropHolder } from './release.js'

/** Takes a name from all its holders. A run that held it is taken over, although its instance may live. */
export function resetLease(tx: Tx, name: string): number {
  const holders = holdersOf(tx, { name })
  for (const { holder, run: id } of holders) {
    const run = id === null ? undefined : runById(tx, { id })
    if (run === undefined) dropHolder(tx, name, holder)
    else takeOver(tx, run, false)
  }
  tx.wakes.add('attempts')
  return holders.length
}
