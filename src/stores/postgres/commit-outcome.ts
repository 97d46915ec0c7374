/**
 * What became of a commit whose answer was lost. The server knows: while the transaction is in progress it may still
 * commit, so nothing can be said; afterwards the run itself says whether this attempt marked it. The number alone is no
 * proof, because after a failover it may be another transaction's.
 */
import { sleep } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Database } from './connection.js'

export interface OpenTransaction {
  readonly run: string
  readonly token: number
  /** The server's number of it. */
  readonly xid: string
}

export type CommitOutcome = 'committed' | 'rolled back' | 'stale'

/** A connection that nobody talks over any more is closed by the server within this. */
const PATIENCE_MS = 30_000
const MAX_WAIT_MS = 500

/** Asks until there is an answer. Throws when there is none to be had: the settlement of the run then finds out. */
export async function commitOutcome(
  db: Database,
  transaction: OpenTransaction,
  cause: unknown,
  signal: AbortSignal | undefined,
): Promise<CommitOutcome> {
  const until = db.clock.monotonic() + PATIENCE_MS
  for (let waitMs = 10; ; waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)) {
    const outcome = await ask(db, transaction).catch(() => undefined)
    if (outcome !== undefined) return outcome
    if (signal?.aborted || db.clock.monotonic() > until) break
    await sleep(db.clock, waitMs, signal)
  }
  throw failure(
    'STORE_UNREACHABLE',
    `the answer to the commit of run ${transaction.run} was lost, and the database does not say what became of it; either all of it happened or nothing`,
    { cause },
  )
}

const STATUS = 'select pg_xact_status($1::text::xid8)'
const MARK = 'select settled_token = $2, running and token = $2 from belfry.runs where id = $1'

async function ask(db: Database, { run, token, xid }: OpenTransaction): Promise<CommitOutcome | undefined> {
  const status = await statusOf(db, xid)
  if (status === 'in progress') return undefined
  const [row] = await db.read(MARK, [run, token])
  // A run that is gone, because its history is not kept, had nobody to end it but this commit or its successor.
  if (row === undefined) return status === 'committed' ? 'committed' : 'stale'
  if (row[0] === 't') return 'committed'
  return row[1] === 't' ? 'rolled back' : 'stale'
}

/** A server that has not come to that number yet was never told of the transaction, as after a failover. */
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
