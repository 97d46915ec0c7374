/** How another thread can reach the same database: by a URL, or by the options of the pool that was given. */
import type { NoSource, StoreSource } from '../../../core/beat-store.js'
import { copyData } from '../../../core/copied-data.js'
import type { PostgresOptions } from '../options.js'
import type { PgPool } from './database.js'
import type { Proof } from './proof-of-life.js'

/** What the beat thread opens the database with. */
export interface BeatStoreOptions {
  readonly schema: string
  /** Options of a client of `pg`. */
  readonly client: Readonly<Record<string, unknown>>
  /** Where the process proves its life: memory that holds the number which does, or 0. */
  readonly proof?: SharedArrayBuffer
}

/** What belongs to the pool rather than to its connections, or is set for each query anyway. */
const NOT_OF_CLIENTS: ReadonlySet<string> = new Set([
  ...['Promise', 'log', 'max', 'min', 'poolSize', 'maxUses', 'maxLifetimeSeconds', 'allowExitOnIdle', 'types'],
  ...['idleTimeoutMillis', 'statement_timeout', 'query_timeout', 'idle_in_transaction_session_timeout'],
])

export function reopen(
  { pool, url, direct, schema = 'belfry' }: PostgresOptions,
  proof: Proof | undefined,
): StoreSource | NoSource {
  const source = (client: BeatStoreOptions['client']): StoreSource => ({
    module: new URL('./beat-store.js', import.meta.url).href,
    options: { schema, client, ...(proof === undefined ? {} : { proof: proof.memory }) } satisfies BeatStoreOptions,
  })
  if (pool === undefined) return source({ connectionString: url })
  const copy = clientOptions(pool)
  if ('client' in copy) return source(copy.client)
  return direct === undefined ? copy : source({ connectionString: direct })
}

function clientOptions(pool: PgPool): Pick<BeatStoreOptions, 'client'> | NoSource {
  // Other pools have options too, which say nothing of where they connect to.
  if (pool.options === undefined || !('Client' in pool)) return impossible('is no pool of `pg`')
  const { value, strange } = copyData(pool.options, NOT_OF_CLIENTS)
  if (strange.length === 0) return { client: value as BeatStoreOptions['client'] }
  return impossible(`has options that only this thread can use (${strange.join(', ')})`)
}

function impossible(why: string): NoSource {
  return {
    because: `the pool of the Postgres store ${why}; pass \`direct\`, a URL for connections of its own, beside it`,
  }
}
