import type { Lease, RenewRequest } from '../../../core/locks/lease.js'
import { change } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { type Steps, stepwise } from '../connection/write-queue.js'
import { holderOf } from './acquire.js'
import { type LeaseRow, toLease } from './lease-codec.js'
import source from './renew.sql'

/** Renews an expired lock too, while no other holder took it. */
export function renewLeases(tx: Tx, requests: readonly RenewRequest[]): Steps<(Lease | undefined)[]> {
  return stepwise(requests, ({ name, holder, token, ttlMs }) => {
    const lease = holderOf(tx, { name, holder })
    if (lease === undefined || lease.token !== token || lease.released === 1) return undefined
    return toLease(extend(tx, lease, tx.now + ttlMs))
  })
}

type Extension = { name: string; holder: string; expiresAt: number; released: number }
const writeExpiry = change<Extension>(source, 'extend')

/** A run's key expires with its instance, whose beats extend it: there is nothing to write. */
export function extend(tx: Tx, lease: LeaseRow, expiresAt: number, released = 0): LeaseRow {
  if (lease.run !== null) return lease
  writeExpiry(tx, { name: lease.name, holder: lease.holder, expiresAt, released })
  return { ...lease, expires_at: expiresAt, released }
}
