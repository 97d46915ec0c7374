/** Leases as rows: their columns, how a row is read, and who else wants the name. */
import type { Lease } from '../../core/lease.js'
import type { Row } from './connection/database.js'
import { LEASE_EXPIRY, LEASE_INSTANCE } from './names.js'
import { waitingForKey } from './waiting-line.js'

/** With the lease as `l` and its instance as `i`. */
export const COLUMNS = `l.name, l.holder, l.token, l.acquired_at, ${LEASE_EXPIRY}, l.instance, l.run, l.released`
export const RETURNED_LEASE = `name text, holder text, token bigint, acquired_at bigint, expires_at bigint, instance text,
    run bigint, released boolean`
export const LEASE_NAMES = 'name, holder, token, acquired_at, expires_at, instance, run, released'
export const FROM = `from belfry.leases l ${LEASE_INSTANCE}`

export function toLease([name, holder, token, acquiredAt, expiresAt, instance, run, released]: Row): Lease {
  return {
    ...{ name: name ?? '', holder: holder ?? '', token: Number(token) },
    ...{ acquiredAt: Number(acquiredAt), expiresAt: Number(expiresAt) },
    ...(instance === null || instance === undefined ? {} : { instance }),
    ...(run === null || run === undefined ? {} : { run }),
    ...(released === 't' ? { released: true as const } : {}),
  }
}

/** Nobody stands in line for a name, given by an expression: then there is nothing to hand on. */
export function noCrowd(name: string): string {
  return `not exists (select 1 from belfry.waiters where name = ${name})
    and not exists (select 1 from belfry.runs where ${waitingForKey(name)})`
}

/** A lease that was handed to somebody who waits, as the database tells it. */
export interface Handed {
  readonly name: string
  readonly holder: string
  readonly token: number
  readonly acquiredAt: number
  readonly expiresAt: number
  readonly instance: string | null
  readonly proof: number | null
}

/** The same of a lease `l` in SQL. */
export const HANDED_LEASE = `json_build_object('name', l.name, 'holder', l.holder, 'token', l.token,
          'acquiredAt', l.acquired_at, 'expiresAt', l.expires_at, 'instance', l.instance, 'proof', l.proof)`

export function leaseOf({ name, holder, token, acquiredAt, expiresAt, instance }: Handed): Lease {
  return { name, holder, token, acquiredAt, expiresAt, ...(instance === null ? {} : { instance }) }
}

/** Of none or several, with commas between them. */
export function handedLeases(text: string | null | undefined): readonly Handed[] {
  return typeof text === 'string' ? (JSON.parse(`[${text}]`) as Handed[]) : []
}
