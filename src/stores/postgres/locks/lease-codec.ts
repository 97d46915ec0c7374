/** Leases as rows, and as what the database tells of a lock that was handed to a waiter. */
import type { AcquireRequest, Lease, ReleaseRequest, RenewRequest } from '../../../core/locks/lease.js'
import { boolean, columnsOf, integer, listOf, optional, type RowCodec, text } from '../schema/sql-function.js'

/** What the holder of a lease is told of it. */
export const grantColumns = {
  name: text,
  holder: text,
  token: integer,
  acquiredAt: integer,
  expiresAt: integer,
  instance: optional(text),
}

/** Of `belfry.lease_times`. */
export const leaseColumns = { ...grantColumns, run: optional(text), released: boolean }

const columns = columnsOf(leaseColumns)

export const leaseCodec: RowCodec<Lease> = {
  select: columns.select,
  read: (row, from) => leaseOf(columns.read(row, from)),
}

interface LeaseValues {
  readonly name: string
  readonly holder: string
  readonly token: number
  readonly acquiredAt: number
  readonly expiresAt: number
  readonly instance?: string | null | undefined
  readonly run?: string | undefined
  readonly released?: boolean
}

export function leaseOf(values: LeaseValues): Lease {
  const { name, holder, token, acquiredAt, expiresAt, instance, run, released = false } = values
  return {
    ...{ name, holder, token, acquiredAt, expiresAt },
    ...(instance === null || instance === undefined ? {} : { instance }),
    ...(run === undefined ? {} : { run }),
    ...(released ? { released } : {}),
  }
}

/** A lease that was handed to a waiter, as the notification tells it. */
export interface Handed {
  readonly name: string
  readonly holder: string
}

/** As `belfry.acquisition`. */
export const acquisitionRows = listOf('acquisition', (request: AcquireRequest) => ({
  ...{ name: request.name, holder: request.holder, permits: request.permits },
  ...{ instance: request.instance, floor: request.floor, remote: request.remote ?? false },
  ...{ ttl_ms: Math.ceil(request.ttlMs), wait_ms: Math.ceil(request.waitMs ?? 0) },
}))

/** As `belfry.renewal`. */
export const renewalRows = listOf('renewal', ({ name, holder, token, ttlMs }: RenewRequest) => ({
  ...{ name, holder, token },
  ttl_ms: Math.ceil(ttlMs),
}))

/** As `belfry.release`. */
export const releaseRows = listOf('release', ({ name, holder, minHoldMs = 0 }: ReleaseRequest) => ({
  ...{ name, holder },
  min_hold_ms: Math.ceil(minHoldMs),
}))
