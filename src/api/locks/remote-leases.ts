/**
 * Leases for holders outside this process, such as clients of the service. This process does not renew the leases, and
 * they outlive it. `Locks` offers them as `grant`, `renewGrant` and `releaseGrant`.
 */
import { randomUUID } from 'node:crypto'
import { checkOptions } from '../../core/checks/known-options.js'
import { failure, quote } from '../../core/errors.js'
import type { Lease } from '../../core/locks/lease.js'
import { checkName } from '../../core/names/names.js'
import type { LeaseStore } from '../../core/store.js'
import type { Duration } from '../../time/duration.js'
import type { LeaseRequest } from './lease-requests.js'
import { type LockOptions, parseLockOptions } from './lock-options.js'

export interface GrantOptions extends Pick<LockOptions, 'ttl' | 'wait' | 'permits'> {
  /** Identifies the acquisition, so that a repeated request finds the same lease. Default a new id. */
  readonly holder?: string
  readonly signal?: AbortSignal
}

/** Identifies a granted lease by its token. A lease that may have expired needs its holder too. */
export interface GrantRef {
  readonly token: number
  readonly holder?: string
}

export function grantRequest(name: string, options: GrantOptions): LeaseRequest {
  checkName(name, 'lock name')
  checkOptions(options, ['ttl', 'wait', 'permits', 'holder', 'signal'], `lock "${name}"`)
  const { holder = randomUUID(), signal, ...rest } = options
  const { ttlMs, waitMs, permits } = parseLockOptions(name, rest)
  return { name, holder: checkName(holder, `holder of lock "${name}"`), signal, ttlMs, waitMs, permits, remote: true }
}

export async function renewGrant(
  leases: LeaseStore,
  name: string,
  { token, holder }: GrantRef,
  ttl?: Duration,
): Promise<Lease | undefined> {
  checkToken(checkName(name, 'lock name'), token)
  const { ttlMs } = parseLockOptions(name, ttl === undefined ? {} : { ttl })
  const known =
    holder === undefined ? await holderOf(leases, name, token) : checkName(holder, `holder of lock "${name}"`)
  if (known === undefined) return undefined
  const [lease] = await leases.renew([{ name, holder: known, token, ttlMs, remote: true }])
  return lease
}

export async function releaseGrant(leases: LeaseStore, name: string, grant: GrantRef): Promise<boolean> {
  const { token, holder } = grant
  checkToken(name, token)
  const listed = (await leases.inspect(checkName(name, 'lock name'))).find((lease) => lease.token === token)
  // An expired lease is not listed. If it can be renewed, no other holder took it.
  const lease = listed ?? (holder === undefined ? undefined : await renewGrant(leases, name, grant))
  // The instance that executes a run releases the run's key.
  if (lease === undefined || lease.run !== undefined) return false
  if (holder !== undefined && holder !== lease.holder) return false
  return leases.release({ name, holder: lease.holder })
}

/** The holder of a lease, by token. An expired lease is not listed: only a caller who knows the holder can renew it. */
async function holderOf(leases: LeaseStore, name: string, token: number): Promise<string | undefined> {
  const lease = (await leases.inspect(name)).find((each) => each.token === token)
  return lease?.run === undefined ? lease?.holder : undefined
}

function checkToken(name: string, token: unknown): void {
  if (Number.isSafeInteger(token)) return
  throw failure('OPTION_INVALID', `lock "${name}": token is ${quote(token)}; it must be the number that acquiring gave`)
}
