/** What the beat thread needs to open the same store, as plain data: a URL, or the options of the user's pool. */

import { copyData } from '../../../core/connection/copied-data.js'
import type { NoSource, StoreSource } from '../../../core/instances/beat-store.js'
import type { PostgresOptions } from '../options.js'
import type { PgPool } from './driver.js'
import type { ProofOfLife } from './proof-of-life.js'
import type { ServerIdentity } from './server-identity.js'

export interface BeatStoreOptions {
  readonly schema: string
  /** Options of a `pg` client. */
  readonly client: Readonly<Record<string, unknown>>
  /** In the advisory mode: the shared memory with the number that proves life. */
  readonly proof?: SharedArrayBuffer
  /** The shared memory with the identity of the server that this process has seen. */
  readonly identity: SharedArrayBuffer
}

/**
 * Options that are not copied: those of the pool rather than of a connection, and time limits, which Belfry applies to
 * each statement itself.
 */
const OF_THE_POOL: ReadonlySet<string> = new Set([
  ...['Promise', 'log', 'max', 'min', 'poolSize', 'maxUses', 'maxLifetimeSeconds', 'allowExitOnIdle', 'types'],
  ...['idleTimeoutMillis', 'statement_timeout', 'query_timeout', 'idle_in_transaction_session_timeout'],
])

export function reopen(
  { pool, url, direct, schema = 'belfry' }: PostgresOptions,
  { memory: identity }: ServerIdentity,
  proof: ProofOfLife | undefined,
): StoreSource | NoSource {
  const source = (client: BeatStoreOptions['client']): StoreSource => ({
    module: new URL('./beat-store.js', import.meta.url).href,
    options: {
      schema,
      client,
      identity,
      ...(proof === undefined ? {} : { proof: proof.memory }),
    } satisfies BeatStoreOptions,
  })
  if (pool === undefined) return source({ connectionString: url })
  const copy = clientOptions(pool)
  if ('client' in copy) return source(copy.client)
  return direct === undefined ? copy : source({ connectionString: direct })
}

function clientOptions(pool: PgPool): Pick<BeatStoreOptions, 'client'> | NoSource {
  // Other kinds of pools may not keep in their options where they connect to.
  if (pool.options === undefined || !('Client' in pool)) return impossible('is no pool of `pg`')
  const { value, strange } = copyData(pool.options, OF_THE_POOL)
  if (strange.length === 0) return { client: value as BeatStoreOptions['client'] }
  return impossible(`has options that only this thread can use (${strange.join(', ')})`)
}

function impossible(why: string): NoSource {
  return {
    because: `the pool of the Postgres store ${why}; pass \`direct\`, a URL for connections of its own, beside it`,
  }
}
