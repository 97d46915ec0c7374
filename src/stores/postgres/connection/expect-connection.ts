/**
 * Waits until the pool gives a connection, but no longer than ten seconds. A caller who holds the pool's last connection
 * for a transaction, and calls Belfry inside it for the first time, would otherwise wait for itself without end.
 */
import { type Clock, sleep } from '../../../core/clock.js'
import { failure } from '../../../core/errors.js'
import type { PgPool } from './database.js'
import { isOfDriver } from './errors.js'
import { takeClient } from './take-client.js'

const PATIENCE_MS = 10_000

export async function expectConnection(pool: PgPool, clock: Clock): Promise<void> {
  const over = new AbortController()
  const taken = takeClient(pool).then(
    (client) => {
      client.release()
      return 'given' as const
    },
    (error: unknown) => {
      // A server that cannot be reached: what asks it next tries again, and says what is wrong.
      if (isOfDriver(error)) return 'given' as const
      throw error
    },
  )
  const patience = sleep(clock, PATIENCE_MS, over.signal).then(() => 'none' as const)
  try {
    if ((await Promise.race([taken, patience])) === 'given') return
  } finally {
    over.abort()
  }
  // A connection that is given later goes back at once.
  taken.catch(() => {})
  throw failure(
    'STORE_UNREACHABLE',
    `opening the store: the pool gave no connection for ${PATIENCE_MS / 1_000} s, so all that it may open (\`max\`) are in use. If one of them is held by a transaction that calls Belfry, call belfry.start() or belfry.now() before that transaction, or raise \`max\``,
  )
}
