/**
 * The backend (server process) of a handler's transaction, observed over another connection. It has the transaction's
 * number only while that is open, so the answer is right through a pooler too, where a backend serves several clients.
 */
import type { Database } from '../connection/database.js'

export interface TransactionBackend {
  /** The number of the transaction. */
  readonly xid: string
  readonly pid: number
}

/**
 * - `working`: on a statement, or the pool's role may not see its state, which proves nothing.
 * - `over`: the transaction is not open any more.
 * - otherwise idle inside the transaction, since the instant that the text names.
 */
export type BackendState = string

const WORKING = 'working'
const OVER = 'over'

const LOOK =
  'select backend_xid = pg_catalog.xid($2::text::xid8), state, state_change from pg_catalog.pg_stat_activity where pid = $1'

export async function lookAtBackend(db: Database, { xid, pid }: TransactionBackend): Promise<BackendState> {
  const [row] = await db.read(LOOK, [pid, xid])
  if (row === undefined) return OVER
  const [hasTransaction, state, since] = row
  if (hasTransaction !== 't') return state === null ? WORKING : OVER
  return state?.startsWith('idle in transaction') ? (since ?? WORKING) : WORKING
}

export function isWorking(state: BackendState): boolean {
  return state === WORKING
}

/** Only in that transaction: a pooler may have given the backend to another client by now. */
const END =
  'select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity where pid = $1 and backend_xid = pg_catalog.xid($2::text::xid8)'

export async function endBackend(db: Database, { xid, pid }: TransactionBackend): Promise<void> {
  await db.read(END, [pid, xid])
}
