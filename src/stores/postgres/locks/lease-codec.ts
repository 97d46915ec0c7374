/** Leases as rows, and as what the database tells of a lock that was handed to a waiter. */
import type { AcquireRequest, Lease, ReleaseRequest, RenewRequest } from '../../../core/locks/lease.js'
import { listOf, type RowCodec } from '../schema/sql-function.js'

const COLUMNS = ['name', 'holder', 'token', 'acquired_at', 'expires_at', 'instance', 'run', 'released'] as const

/** Of `belfry.lease_times`. */
export const leaseCodec: RowCodec<Lease> = {
  select: (alias) => COLUMNS.map((name) => `${alias}.${name}`).join(', '),
  read: (row, from) => {
    const [name, holder, token, acquiredAt, expiresAt, instance, run, released] = row.slice(from)
    return {
      ...{ name: name ?? '', holder: holder ?? '', token: Number(token) },
      ...{ acquiredAt: Number(acquiredAt), expiresAt: Number(expiresAt) },
      ...(instance === null || instance === undefined ? {} : { instance }),
      ...(run === null || run === undefined ? {} : { run }),
      ...(released === 't' ? { released: true as const } : {}),
    }
  },
}

/** A lease that was handed to a waiter, as the database tells it. */
export interface Handed {
  readonly name: string
  readonly holder: string
  readonly token: number
  readonly acquiredAt: number
  readonly expiresAt: number
  readonly instance: string | null
  /** The session that proves its holder's process alive. */
  readonly proof: number | null
}

export function leaseOf({ name, holder, token, acquiredAt, expiresAt, instance }: Handed): Lease {
  return { name, holder, token, acquiredAt, expiresAt, ...(instance === null ? {} : { instance }) }
}

/** As `belfry.acquisition`. */
export const acquisitionRows = listOf('acquisition', (request: AcquireRequest) => ({
  name: request.name,
  holder: request.holder,
  ttl_ms: Math.ceil(request.ttlMs),
  instance: request.instance,
  floor: request.floor,
}))

/** As `belfry.renewal`. */
export const renewalRows = listOf('renewal', ({ name, holder, token, ttlMs }: RenewRequest) => ({
  ...{ name, holder, token },
  ttl_ms: Math.ceil(ttlMs),
}))

/** As `belfry.lock_holder`. */
export const holderRows = listOf('lock_holder', ({ name, holder }: Pick<ReleaseRequest, 'name' | 'holder'>) => ({
  name,
  holder,
}))
