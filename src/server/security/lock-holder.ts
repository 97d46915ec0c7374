/**
 * Who holds a lock that was acquired over HTTP. Names of holders and tokens can be seen by everybody who sees the lock, so
 * neither may be enough to speak for its holder: what is stored begins with who asked, and only they can renew the lease,
 * give it back, or find it again. Whoever takes a lock from others has to be admin, and is written down.
 */
import { createHash, randomUUID } from 'node:crypto'
import type { Lease } from '../../core/lease.js'
import type { Caller } from './caller.js'

const MARK = /^api:[0-9a-f]{16}:/
/** Names have 255 characters at the most, and the mark is among them. */
export const MAX_HOLDER = 200

export function storedHolder(caller: Caller, holder: string = randomUUID()): string {
  return `${markOf(caller)}${holder}`
}

export function shownHolder(stored: string): string {
  return stored.replace(MARK, '')
}

/** The stored holder of what this caller has under a token; undefined when it is not theirs, or nobody's. */
export function ownHolder(caller: Caller, leases: readonly Lease[], token: number): string | undefined {
  return leases.find((lease) => lease.token === token && lease.holder.startsWith(markOf(caller)))?.holder
}

function markOf({ name }: Caller): string {
  return `api:${createHash('sha256').update(name).digest('hex').slice(0, 16)}:`
}
