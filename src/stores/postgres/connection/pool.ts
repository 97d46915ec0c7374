/** The pool that a store uses: one that was given, which stays its owner's, or one that is made here. */
import type { PgClient, PgPool } from './database.js'
import { newPool } from './driver.js'

export interface UsedPool {
  readonly used: PgPool
  /** One that was made here is ended; one that was given is left as it was found. */
  leave(): Promise<void>
}

export function poolOf({ pool, url }: { readonly pool?: PgPool; readonly url?: string }): UsedPool {
  const used = pool ?? newPool({ connectionString: url ?? '' })
  const heedNoMore = heed(used)
  let ended: Promise<void> | undefined
  return {
    used,
    async leave() {
      if (pool !== undefined) return heedNoMore()
      // It is heard to the last: its connections may still be ending when it says that it has ended. A second end would be
      // an error.
      ended ??= used.end()
      await ended
    },
  }
}

const heeded = new WeakMap<PgPool, number>()

/** An idle connection that breaks is replaced by the pool; with nobody to hear of it, it would end the process. */
function ignore(): void {}

const listenedTo = new WeakSet<PgClient>()

/**
 * A connection may break in the very moment in which it is handed out: the pool listens no longer, and whoever asked for
 * it does not yet. So somebody always does, from its first time on.
 */
function listen(client: PgClient): void {
  if (listenedTo.has(client)) return
  listenedTo.add(client)
  client.on('error', ignore)
}

/** Listens to a pool's errors, once for all stores that use it, beside whoever else does. */
function heed(pool: PgPool): () => void {
  const users = heeded.get(pool) ?? 0
  if (users === 0) {
    pool.on('error', ignore)
    pool.on('acquire', listen)
  }
  heeded.set(pool, users + 1)
  let done = false
  return () => {
    if (done) return
    done = true
    const left = (heeded.get(pool) ?? 1) - 1
    heeded.set(pool, left)
    if (left > 0) return
    pool.removeListener('error', ignore)
    pool.removeListener('acquire', listen)
  }
}
