import type { ReleaseRequest } from '../../../core/locks/lease.js'
import { change } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import type { RunRow } from '../runs/run-codec.js'
import { holderOf } from './acquire.js'
import source from './release.sql'
import { extend } from './renew.js'

/** Removes only the holder's own row and its place in the queue, so that a repeated or late release is harmless. */
export function releaseLease(tx: Tx, { name, holder, minHoldMs = 0 }: ReleaseRequest): boolean {
  const waited = dropWaiter(tx, { name, holder }) > 0
  const lease = holderOf(tx, { name, holder })
  const held = lease !== undefined && lease.released === 0 && lease.run === null
  if (held) {
    const heldUntil = lease.acquired_at + minHoldMs
    if (heldUntil <= tx.now) dropHolder(tx, name, holder)
    else extend(tx, lease, heldUntil, 1)
  }
  tx.freedNames.add(name)
  return held || waited
}

type Holder = { name: string; holder: string }
const deleteHolder = change<Holder>(source, 'dropHolder')
const deleteRunKey = change<{ run: number }>(source, 'dropRunKey')
export const dropWaiter = change<Holder>(source, 'dropWaiter')

export function dropHolder(tx: Tx, name: string, holder: string): void {
  if (deleteHolder(tx, { name, holder }) > 0) tx.freedNames.add(name)
}

/** Frees the key that an attempt holds, if it holds one. */
export function releaseRunKey(tx: Tx, { id, key }: RunRow): void {
  if (key !== null && deleteRunKey(tx, { run: id }) > 0) tx.freedNames.add(key)
}
