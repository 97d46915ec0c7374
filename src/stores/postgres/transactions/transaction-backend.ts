/**
 * The server's side of a handler's transaction, asked about over another connection. A backend has the transaction's
 * number only as long as that is open, so the answer holds through a pooler too, where a backend changes hands between
 * transactions.
 */
import type { Database } from '../connection/database.js'

export interface TransactionBackend {
  /** The server's number of the transaction. */
  readonly xid: string
  readonly pid: number
}

/**
 * - `working`: at a statement; or the role of these connections may not see, which proves nothing.
 * - `over`: the transaction is not open any more.
 * - anything else: idle inside the transaction, since the instant that it names.
 */
export type BackendState = string

const WORKING = 'working'
const OVER = 'over'

const LOOK = `select backend_xid = xid($2::text::xid8), state, state_change from pg_stat_activity where pid = $1`

export async function lookAtBackend(db: Database, { xid, pid }: TransactionBackend): Promise<BackendState> {
  const [row] = await db.read(LOOK, [pid, xid])
  if (row === undefined) return OVER
  const [isIts, state, since] = row
  if (isIts !== 't') return state === null ? WORKING : OVER
  return state?.startsWith('idle in transaction') ? (since ?? WORKING) : WORKING
}

export function isWorking(state: BackendState): boolean {
  return state === WORKING
}

/** Only if it still is at that transaction: the connection may serve another client by now. */
const END = `select pg_terminate_backend(pid) from pg_stat_activity
  where pid = $1 and backend_xid = xid($2::text::xid8)`

export async function endBackend(db: Database, { xid, pid }: TransactionBackend): Promise<void> {
  await db.read(END, [pid, xid])
}
