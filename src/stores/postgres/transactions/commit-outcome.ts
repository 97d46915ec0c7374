/**
 * Finds out the outcome of a commit whose reply was lost. Asks over another connection until the outcome is known.
 *
 * - The server knows the transaction's number. While the transaction is in progress it may still commit, so its outcome
 *   is unknown.
 * - After that, the run tells: it carries the attempt's mark, or not. The status of the number alone proves nothing,
 *   because after a failover the new primary may have given the number to another transaction.
 * - If the commit never reached the server, its backend stays idle inside the transaction. Such a backend is ended
 *   after one second, instead of by its idle timeout.
 */
import { sleep } from '../../../core/clock.js'
import { failure } from '../../../core/errors.js'
import type { Database } from '../connection/database.js'
import { endBackend, isWorking, lookAtBackend, type TransactionBackend } from './transaction-backend.js'

export interface OpenTransaction {
  readonly run: string
  readonly token: number
  readonly backend: TransactionBackend
}

export type CommitOutcome = 'committed' | 'rolled back' | 'stale'

/** How long to ask for the outcome. */
const PATIENCE_MS = 30_000
const MAX_WAIT_MS = 500
/** A backend that stays idle for this long never received the commit. */
const IDLE_MS = 1_000

/** Throws if the outcome stays unknown. The settlement of the run then finds it by the mark. */
export async function commitOutcome(
  db: Database,
  transaction: OpenTransaction,
  cause: unknown,
  signal: AbortSignal | undefined,
): Promise<CommitOutcome> {
  const until = db.clock.monotonic() + PATIENCE_MS
  const endIdle = idleEnder(db, transaction.backend)
  for (let waitMs = 10; ; waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)) {
    const outcome = await ask(db, transaction).catch(() => undefined)
    if (outcome !== undefined) return outcome
    await endIdle().catch(() => {})
    if (signal?.aborted || db.clock.monotonic() > until) break
    await sleep(db.clock, waitMs, signal)
  }
  throw failure(
    'STORE_UNREACHABLE',
    `the answer to the commit of run ${transaction.run} was lost, and the database does not say what became of it; either all of it happened or nothing`,
    { cause },
  )
}

/**
 * Returns a function to call repeatedly. It ends the backend once several calls have found it idle, for `IDLE_MS`
 * altogether.
 */
function idleEnder(db: Database, backend: TransactionBackend): () => Promise<void> {
  let idle = { state: '', since: 0 }
  return async () => {
    const state = await lookAtBackend(db, backend)
    const now = db.clock.monotonic()
    if (isWorking(state) || state !== idle.state) idle = { state, since: now }
    else if (now - idle.since >= IDLE_MS) await endBackend(db, backend)
  }
}

const STATUS = 'select pg_catalog.pg_xact_status($1::text::xid8)'
const MARK = `select settled_token = $2, state = 'running' and token = $2 from belfry.runs where id = $1`

async function ask(db: Database, { run, token, backend }: OpenTransaction): Promise<CommitOutcome | undefined> {
  const status = await statusOf(db, backend.xid)
  if (status === 'in progress') return undefined
  const [row] = await db.read(MARK, [run, token])
  // A run whose history is not kept is deleted when it ends: by this commit, or by a later attempt.
  if (row === undefined) return status === 'committed' ? 'committed' : 'stale'
  if (row[0] === 't') return 'committed'
  return row[1] === 't' ? 'rolled back' : 'stale'
}

/** Returns null if the server has not reached this number: it is a new primary that never received the transaction. */
async function statusOf(db: Database, xid: string): Promise<string | null> {
  try {
    const [row] = await db.read(STATUS, [xid])
    return row?.[0] ?? null
  } catch (error) {
    if ((error as { code?: unknown }).code === IN_THE_FUTURE) return null
    throw error
  }
}

const IN_THE_FUTURE = '22023'
