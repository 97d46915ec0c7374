/**
 * The pool of a store: the user's, or one that the store opens for a URL and ends when it closes.
 *
 * A connection that breaks while it is idle, or between two statements, emits `error`. Node ends the process when
 * nothing listens to that event. The pool replaces such a connection, and the next statement on it fails anyway, so the
 * listener here only remembers the error.
 */
import { newPool, type PgClient, type PgPool } from './driver.js'

export interface StorePool {
  readonly used: PgPool
  /** Ends a pool that was opened here. From the user's pool it only removes the listeners. */
  leave(): Promise<void>
}

export interface PoolSource {
  readonly pool?: PgPool
  readonly url?: string
  /** Options of `pg`, instead of a URL. */
  readonly options?: Readonly<Record<string, unknown>>
}

export function poolOf({ pool, url, options = { connectionString: url } }: PoolSource): StorePool {
  const used = pool ?? newPool(options)
  const stopListening = listenTo(used)
  let left: Promise<void> | undefined
  const leave = async () => {
    // The listeners stay: the pool's last connections may break while they close.
    if (pool === undefined) return used.end()
    stopListening()
  }
  return {
    used,
    leave() {
      left ??= leave()
      return left
    },
  }
}

const stores = new WeakMap<PgPool, number>()

/** Listens to a pool once for all stores that share it: Node warns of more than ten listeners. */
function listenTo(pool: PgPool): () => void {
  const count = stores.get(pool) ?? 0
  stores.set(pool, count + 1)
  if (count === 0) {
    pool.on('error', ignore)
    pool.on('acquire', rememberErrors)
  }
  return () => {
    const left = (stores.get(pool) ?? 1) - 1
    stores.set(pool, left)
    if (left > 0) return
    pool.removeListener('error', ignore)
    pool.removeListener('acquire', rememberErrors)
  }
}

const errors = new WeakMap<PgClient, { error?: Error }>()

/**
 * Listens for as long as the client exists. A client may break while the pool hands it out, after the pool has removed
 * its own listener and before the new user has added one.
 */
function rememberErrors(client: PgClient): void {
  if (errors.has(client)) return
  const heard: { error?: Error } = {}
  errors.set(client, heard)
  client.on('error', (error) => {
    heard.error ??= error
  })
}

/** The error with which the connection broke while no statement was in flight, if it did. */
export function errorOf(client: PgClient): Error | undefined {
  return errors.get(client)?.error
}

export function ignore(): void {}
