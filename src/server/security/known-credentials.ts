/**
 * The credentials of the store in memory, for an address that has sent too many invalid ones. Its next credential is compared
 * with these instead of being looked up: a valid one is accepted, and an invalid one costs no read of the store.
 */
import { cachedRead } from '../../api/cached-read.js'
import type { Clock } from '../../core/clock.js'
import type { RecordStore } from '../../core/store.js'
import { type Credential, matchesHash } from './credential.js'

const FRESH_MS = 5_000
const PAGE = 1_000
/** The credentials of larger stores are not known, and an address has to wait. */
const MAX_PAGES = 10

export class KnownCredentials {
  readonly #read: () => Promise<ReadonlyMap<string, string>>

  constructor(clock: Clock, records: RecordStore, kind: string) {
    this.#read = cachedRead(() => hashesById(records, kind), FRESH_MS, clock)
  }

  async has({ id, secret }: Credential): Promise<boolean> {
    const hash = (await this.#read()).get(id)
    return hash !== undefined && matchesHash(secret, hash)
  }
}

async function hashesById(records: RecordStore, kind: string): Promise<ReadonlyMap<string, string>> {
  const hashes = new Map<string, string>()
  let after: { readonly after?: string } = {}
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const { items, next } = await records.list({ kind, limit: PAGE, ...after })
    for (const { id, body } of items) {
      const { hash } = (body ?? {}) as { readonly hash?: unknown }
      if (typeof hash === 'string') hashes.set(id, hash)
    }
    if (next === undefined) break
    after = { after: next }
  }
  return hashes
}
