/**
 * Holder names of locks acquired over HTTP. Every caller to whom a lock is visible sees its holder and token, so these must
 * not be enough to renew or release it. The stored holder begins with a hash of the caller's name, and only that caller can
 * renew the lease, release it, or acquire it again by the holder's name:
 *
 *     caller "ci", holder "deploy-7"   stored as   api:9c56cc51b374c3ba:deploy-7
 *
 * Taking a lock from another caller needs the role admin, and is audited.
 */
import { createHash } from 'node:crypto'
import { uniqueHolder, withoutPlace } from '../../core/locks/holder.js'
import type { Lease } from '../../core/locks/lease.js'
import type { Caller } from './caller.js'

const MARK = /^api:[0-9a-f]{16}:/
/** A stored holder has at most 255 characters, including the mark. */
export const MAX_HOLDER = 200

/** A caller that gives no holder is shown by its name. */
export function storedHolder(caller: Caller, holder = uniqueHolder(caller.name, MAX_HOLDER)): string {
  return `${markOf(caller)}${holder}`
}

export function shownHolder(stored: string): string {
  return stored.replace(MARK, '')
}

/** For callers who may not see the instances: a process of the library is shown without its host and id. */
export function placelessHolder(stored: string): string {
  return MARK.test(stored) ? stored : withoutPlace(stored)
}

/** The stored holder of the lease with this token; undefined when the caller does not hold it. */
export function ownHolder(caller: Caller, leases: readonly Lease[], token: number): string | undefined {
  return leases.find((lease) => lease.token === token && lease.holder.startsWith(markOf(caller)))?.holder
}

function markOf({ name }: Caller): string {
  return `api:${createHash('sha256').update(name).digest('hex').slice(0, 16)}:`
}
