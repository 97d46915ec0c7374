/**
 * A client out of the pool, without what somebody else left on it. A pool is shared with the app, and an app that gives a
 * client back with a transaction open would have us write into that transaction: acknowledged, and gone with its rollback.
 * So such a connection is closed, which rolls its transaction back, and whoever asked is told.
 *
 * Clients of `pg` know their transaction's status from the last answer. Older ones keep it to themselves: there we listen
 * to the answers from the first time that we see a client, and look once more when ours has come.
 */
import { failure } from '../../../core/errors.js'
import type { PgClient, PgPool } from './database.js'
import { driven } from './errors.js'

const IDLE = 'I'

const heard = new WeakMap<PgClient, string | null>()

export async function takeClient(pool: PgPool): Promise<PgClient> {
  const client = await driven(pool.connect())
  if (!isLeftOpen(client)) return client
  client.release(true)
  throw leftOpen()
}

/** Whether the last that was heard over this connection was that a transaction is open. */
export function isLeftOpen(client: PgClient): boolean {
  const status = client.getTransactionStatus === undefined ? listened(client) : client.getTransactionStatus()
  return typeof status === 'string' && status !== IDLE
}

export function leftOpen(): Error {
  return failure(
    'STORE_INVALID',
    'the pool handed out a connection on which a transaction was still open, so nothing was done, and the connection was closed, which rolls that transaction back: look for a `begin` in the app whose client is released without `commit` or `rollback`',
  )
}

function listened(client: PgClient): string | null {
  const known = heard.get(client)
  if (known !== undefined) return known
  heard.set(client, null)
  client.connection?.on('readyForQuery', ({ status }) => heard.set(client, status ?? null))
  return null
}
