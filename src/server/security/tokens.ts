/** API tokens, stored as records: role, prefix and the hash of the secret, never the secret itself. */

import type { Json } from '../../core/checks/json.js'
import { failure, quote } from '../../core/errors.js'
import { checkName } from '../../core/names/names.js'
import type { StoredRecord } from '../../core/records/record.js'
import type { Page, RecordStore } from '../../core/store.js'
import { SERVICE_ROLES, type ServiceRole } from './caller.js'
import {
  type Credential,
  credentialText,
  matchesHash,
  newCredential,
  parseCredential,
  secretHash,
} from './credential.js'
import { checkQuota, isQuota, type Quota } from './quota.js'
import { checkAllowed } from './targets.js'

export interface TokenInfo {
  readonly id: string
  readonly name: string
  readonly role: ServiceRole
  readonly prefix?: string
  readonly jobs?: readonly string[]
  readonly sinks?: readonly string[]
  readonly quota?: Quota
  readonly createdAt: number
  readonly expiresAt?: number
}

export interface NewToken {
  readonly role: ServiceRole
  readonly name?: string
  readonly prefix?: string
  /** The jobs that its schedules may name, such as `mail.*`. Default: those with the prefix. */
  readonly jobs?: readonly string[]
  /** The sinks that its schedules may name. Default: those with the prefix. */
  readonly sinks?: readonly string[]
  /** How much there may be below the prefix, and how fast the token may import. Default: no limits. */
  readonly quota?: Quota
  readonly ttlMs?: number
}

export const TOKEN_KIND = 'token'
const MARK = 'belfry_'

export class Tokens {
  readonly #records: RecordStore

  constructor(records: RecordStore) {
    this.#records = records
  }

  /** Only the result holds the token's text. The store keeps its hash, so a lost token cannot be recovered. */
  async create({
    role,
    name,
    prefix,
    jobs,
    sinks,
    quota,
    ttlMs,
  }: NewToken): Promise<{ readonly token: string; readonly info: TokenInfo }> {
    checkRole(role)
    if (prefix !== undefined) checkName(prefix, 'the prefix of a token')
    const credential = newCredential()
    const body = {
      hash: secretHash(credential.secret),
      name: name === undefined ? credential.id : checkName(name, 'the name of a token'),
      role,
      ...(prefix === undefined ? {} : { prefix }),
      ...(jobs === undefined ? {} : { jobs: checkAllowed(jobs, 'jobs') }),
      ...(sinks === undefined ? {} : { sinks: checkAllowed(sinks, 'sinks') }),
      ...(quota === undefined ? {} : { quota: { ...checkQuota(quota) } }),
    }
    const write = {
      kind: TOKEN_KIND,
      id: credential.id,
      body,
      ifAbsent: true,
      ...(ttlMs === undefined ? {} : { ttlMs }),
    }
    const { record } = await this.#records.put(write)
    const info = infoOf(record)
    if (info === undefined) throw failure('STORE_INVALID', `the store returned the token ${credential.id} changed`)
    return { token: MARK + credentialText(credential), info }
  }

  async list(query: { readonly after?: string; readonly limit: number }): Promise<Page<TokenInfo>> {
    const { items, ...rest } = await this.#records.list({ kind: TOKEN_KIND, ...query })
    return { items: items.flatMap((record) => infoOf(record) ?? []), ...rest }
  }

  /** Resolves to false when there is no such token. */
  revoke(id: string): Promise<boolean> {
    return /^[\x21-\x7e]{1,255}$/.test(id) ? this.#records.remove(TOKEN_KIND, id) : Promise.resolve(false)
  }

  async get(id: string): Promise<TokenInfo | undefined> {
    const record = await this.#records.get(TOKEN_KIND, id)
    return record === undefined ? undefined : infoOf(record)
  }

  /** The token with this text; undefined when it is unknown, expired or revoked. */
  async check(text: string): Promise<TokenInfo | undefined> {
    const credential = tokenCredential(text)
    if (credential === undefined) return undefined
    const record = await this.#records.get(TOKEN_KIND, credential.id)
    if (record === undefined) return undefined
    const { hash } = (record.body ?? {}) as { readonly hash?: unknown }
    return typeof hash === 'string' && matchesHash(credential.secret, hash) ? infoOf(record) : undefined
  }
}

export function tokenCredential(text: string): Credential | undefined {
  return text.startsWith(MARK) ? parseCredential(text.slice(MARK.length)) : undefined
}

export function checkRole(role: unknown): ServiceRole {
  const known = SERVICE_ROLES.find((each) => each === role)
  if (known !== undefined) return known
  throw failure('OPTION_INVALID', `the role ${quote(role)} is unknown: allowed are ${SERVICE_ROLES.join(', ')}`)
}

/** Returns undefined for a malformed record, whose token is never valid. */
function infoOf({ id, body, writtenAt, expiresAt }: StoredRecord): TokenInfo | undefined {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return undefined
  const { name, role, prefix, jobs, sinks, quota } = body as { readonly [key: string]: Json }
  const known = SERVICE_ROLES.find((each) => each === role)
  if (known === undefined || typeof name !== 'string') return undefined
  if (prefix !== undefined && typeof prefix !== 'string') return undefined
  if (!isList(jobs) || !isList(sinks)) return undefined
  if (quota !== undefined && !isQuota(quota)) return undefined
  return {
    ...{ id, name, role: known, createdAt: writtenAt },
    ...(prefix === undefined ? {} : { prefix }),
    ...(jobs === undefined ? {} : { jobs }),
    ...(sinks === undefined ? {} : { sinks }),
    ...(quota === undefined ? {} : { quota }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  }
}

function isList(value: Json | undefined): value is readonly string[] | undefined {
  return value === undefined || (Array.isArray(value) && value.every((each) => typeof each === 'string'))
}
