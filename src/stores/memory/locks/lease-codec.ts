import type { Lease } from '../../../core/locks/lease.js'
import type { LeaseRecord } from '../schema/state.js'

/** A run's key expires with the instance that runs it. */
export function expiryOf(lease: LeaseRecord): number {
  return lease.owner === undefined ? lease.expiresAt : lease.owner.expiresAt
}

export function toLease(lease: LeaseRecord): Lease {
  return Object.freeze({
    ...{ name: lease.name.name, holder: lease.holder, token: lease.token },
    ...{ acquiredAt: lease.acquiredAt, expiresAt: expiryOf(lease) },
    ...(lease.instance === undefined ? {} : { instance: lease.instance }),
    ...(lease.run === undefined ? {} : { run: lease.run.id }),
    ...(lease.released ? { released: true as const } : {}),
  })
}
