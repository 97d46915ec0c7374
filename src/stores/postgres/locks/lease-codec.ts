/** Leases as rows, and requests as rows of composite types. */
import type { AcquireRequest, Lease, ReleaseRequest, RenewRequest } from '../../../core/locks/lease.js'
import { columnsOf, flag, integer, listOf, optional, type RowCodec, text } from '../schema/sql-function.js'

/** The columns of a lease that its holder gets. */
export const grantColumns = {
  name: text,
  holder: text,
  token: integer,
  acquiredAt: integer,
  expiresAt: integer,
  instance: optional(text),
}

/** The columns of `belfry.lease_times`. */
export const leaseColumns = { ...grantColumns, run: optional(text), released: flag }

export const leaseCodec: RowCodec<Lease> = columnsOf(leaseColumns)

/** The waiter that a lock was handed to, as the notification says. */
export interface Handed {
  readonly holder: string
}

/** Rows of `belfry.acquisition`. */
export const acquisitionRows = listOf('acquisition', (request: AcquireRequest) => ({
  ...{ name: request.name, holder: request.holder, permits: request.permits },
  ...{ instance: request.instance, floor: request.floor, remote: request.remote ?? false },
  ...{ ttl_ms: Math.ceil(request.ttlMs), wait_ms: Math.ceil(request.waitMs ?? 0) },
}))

/** Rows of `belfry.renewal`. */
export const renewalRows = listOf('renewal', ({ name, holder, token, ttlMs }: RenewRequest) => ({
  ...{ name, holder, token },
  ttl_ms: Math.ceil(ttlMs),
}))

/** Rows of `belfry.release`. */
export const releaseRows = listOf('release', ({ name, holder, minHoldMs = 0 }: ReleaseRequest) => ({
  ...{ name, holder },
  min_hold_ms: Math.ceil(minHoldMs),
}))
