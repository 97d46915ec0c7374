/**
 * The backend (server process) of a handler's transaction, observed over another connection. A backend has the
 * transaction's number only while the transaction is open. So the answer is right also through a pooler, where one
 * backend serves several clients.
 */
import type { Database } from '../connection/database.js'

export interface TransactionBackend {
  /** The number of the transaction. */
  readonly xid: string
  readonly pid: number
}

/**
 * - `working`: the backend is executing a statement. Also if the pool's role may not see the state, which proves
 *   nothing.
 * - `over`: the transaction is not open any more.
 * - any other text: the backend is idle inside the transaction, since the instant in the text.
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

/**
 * Ends the backend only if that transaction is still open: a pooler may have given the backend to another client since.
 */
const END =
  'select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity where pid = $1 and backend_xid = pg_catalog.xid($2::text::xid8)'

export async function endBackend(db: Database, { xid, pid }: TransactionBackend): Promise<void> {
  await db.read(END, [pid, xid])
}
