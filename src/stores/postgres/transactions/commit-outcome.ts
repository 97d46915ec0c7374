/**
 * What became of a commit whose answer was lost. The server knows: while the transaction is in progress it may still
 * commit, so nothing can be said; afterwards the run itself says whether this attempt marked it. The number alone is no
 * proof, because after a failover it may be another transaction's.
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

/** How long a server is asked that does not answer. */
const PATIENCE_MS = 30_000
const MAX_WAIT_MS = 500
/** A backend that stays idle for this long in a transaction whose connection broke never got the commit. */
const IDLE_MS = 1_000

/** Asks until there is an answer. Throws when there is none to be had: the settlement of the run then finds out. */
export async function commitOutcome(
  db: Database,
  transaction: OpenTransaction,
  cause: unknown,
  signal: AbortSignal | undefined,
): Promise<CommitOutcome> {
  const until = db.clock.monotonic() + PATIENCE_MS
  const unheard = new UnheardCommit(db, transaction.backend)
  for (let waitMs = 10; ; waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)) {
    const outcome = await ask(db, transaction).catch(() => undefined)
    if (outcome !== undefined) return outcome
    await unheard.end().catch(() => {})
    if (signal?.aborted || db.clock.monotonic() > until) break
    await sleep(db.clock, waitMs, signal)
  }
  throw failure(
    'STORE_UNREACHABLE',
    `the answer to the commit of run ${transaction.run} was lost, and the database does not say what became of it; either all of it happened or nothing`,
    { cause },
  )
}

/** A commit that the server never got: its backend would wait for it until its time in the transaction is over. */
class UnheardCommit {
  readonly #db: Database
  readonly #backend: TransactionBackend
  #idle = { state: '', since: 0 }

  constructor(db: Database, backend: TransactionBackend) {
    this.#db = db
    this.#backend = backend
  }

  /** Ends the backend when it has stayed idle for long enough. */
  async end(): Promise<void> {
    const state = await lookAtBackend(this.#db, this.#backend)
    const now = this.#db.clock.monotonic()
    if (isWorking(state) || state !== this.#idle.state) this.#idle = { state, since: now }
    else if (now - this.#idle.since >= IDLE_MS) await endBackend(this.#db, this.#backend)
  }
}

const STATUS = 'select pg_xact_status($1::text::xid8)'
const MARK = 'select settled_token = $2, running and token = $2 from belfry.runs where id = $1'

async function ask(db: Database, { run, token, backend }: OpenTransaction): Promise<CommitOutcome | undefined> {
  const status = await statusOf(db, backend.xid)
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
