/**
 * A secret that all instances of a service share: 256 random bits in a record of the store, made at first use. It never leaves
 * the service. Each purpose has a key of its own, derived from the secret:
 *
 *     secret ──HMAC-SHA-256("idempotency")──▶ key of the names that repeated requests get
 *            ──HMAC-SHA-256(list)───────────▶ key that seals the cursors of this list
 */
import { createHmac, randomBytes } from 'node:crypto'
import { cachedRead } from '../../api/cached-read.js'
import { BelfryError, failure } from '../../core/errors.js'
import type { StoredRecord } from '../../core/records/record.js'
import type { RecordStore } from '../../core/store.js'

const KIND = 'service-secret'
const ID = 'shared'
/** A failover may lose the record, and another instance may then make a new one: each instance reads it again this often. */
const FRESH_MS = 60_000

export class ServiceSecret {
  readonly #records: RecordStore
  /** What this instance writes when there is no record. */
  #own = randomBytes(32).toString('base64')
  readonly #read = cachedRead(() => this.#shared(), FRESH_MS)

  constructor(records: RecordStore) {
    this.#records = records
  }

  /** The key for a purpose: 32 bytes, the same in every instance. */
  async key(purpose: string): Promise<Buffer> {
    return createHmac('sha256', await this.#read())
      .update(purpose)
      .digest()
  }

  /** On a store that can only be read, the secret stays in this process: cursors work, and nothing else needs it. */
  async #made(): Promise<StoredRecord | undefined> {
    try {
      return (await this.#records.put({ kind: KIND, id: ID, body: this.#own, ifAbsent: true })).record
    } catch (error) {
      if (error instanceof BelfryError && error.code === 'STORE_READ_ONLY') return undefined
      throw error
    }
  }

  async #shared(): Promise<Buffer> {
    const found = await this.#records.get(KIND, ID)
    const record = found ?? (await this.#made())
    if (record !== undefined) this.#own = textOf(record)
    return Buffer.from(this.#own, 'base64')
  }
}

function textOf({ body }: StoredRecord): string {
  if (typeof body === 'string' && Buffer.from(body, 'base64').byteLength === 32) return body
  throw failure('STORE_INVALID', `the record ${KIND} of the store is not a secret of the service`)
}
