/**
 * The handler's transaction: its own writes and the fact that its run has succeeded, in one commit.
 *
 * The last statement before the commit takes the run's row and marks it with the token that has committed, if the
 * attempt is still the one that has the run; else it fails, and everything is rolled back. It travels with the commit,
 * so that a process which is stopped in between holds nothing. The run stays running until its handler has returned, and
 * with it its key and its place in the schedule; from here on, whatever ends the attempt ends the run as succeeded.
 *
 * - The process is stopped past its lease, anywhere: the successor has another token, and the mark finds no row.
 * - The process is stopped for long: the server ends a transaction that says nothing, so that its rows come free.
 * - The answer to the commit is lost: `commit-outcome.ts` asks what became of it.
 * - The network swallows what is sent, or the answers: `held-client.ts` notices it, and closes the connection.
 * - The callback never ends: when its attempt is fenced, or lost, its connection is closed, and what it waits for is ended.
 */
import { failure } from '../../../core/errors.js'
import type { AttemptRef } from '../../../core/instance.js'
import { toJson } from '../../../core/json.js'
import type { TransactResult } from '../../../core/store.js'
import { fromText, toText } from '../../../core/stored-text.js'
import type { Database, Row } from '../connection/database.js'
import { sqlState, storeError } from '../connection/errors.js'
import { runNumber } from '../run-row.js'
import { commitOutcome, type OpenTransaction } from './commit-outcome.js'
import { ENDED_ITSELF, STALE } from './commit-run.js'
import { HandlerClient } from './handler-client.js'
import { textLiteral } from './text-literal.js'
import { HeldClient } from './transaction-connection.js'
import type { TransactionSlots } from './transaction-slots.js'

type Work = (tx: unknown) => unknown

const IDLE_TIMEOUT_MS = 15_000

const BEGIN = `begin isolation level read committed; set local idle_in_transaction_session_timeout = ${IDLE_TIMEOUT_MS};
  select t.xid, t.pid, r.id is not null, r.settled_token = r.token, r.result
  from (select pg_current_xact_id()::text as xid, pg_backend_pid() as pid) t left join belfry.runs r
  on r.running and (r.key is null or exists (select 1 from belfry.leases l where l.run = r.id))`
const COMMIT = 'select belfry.commit_run'

export async function transactRun(
  db: Database,
  slots: TransactionSlots,
  { run: id, token }: AttemptRef,
  work: Work,
  signal?: AbortSignal,
): Promise<TransactResult> {
  const run = runNumber(id)
  if (run === undefined) return 'stale'
  const free = await slots.take(signal)
  try {
    // A connection that breaks before anything has happened is replaced.
    const { held, row } = await db.attempt(() => begin(db, { run, token }, signal))
    void held.released.then(free)
    try {
      return await answer(db, held, { run, token }, row, work, signal)
    } finally {
      await held.giveBack()
    }
  } finally {
    free()
  }
}

async function begin(db: Database, { run, token }: AttemptRef, signal: AbortSignal | undefined) {
  const held = await HeldClient.of(db, signal)
  const [row = []] = await held.begin(`${db.text(BEGIN)} and r.id = ${run} and r.token = ${token}`)
  return { held, row }
}

async function answer(
  db: Database,
  held: HeldClient,
  { run, token }: AttemptRef,
  row: Row,
  work: Work,
  signal: AbortSignal | undefined,
): Promise<TransactResult> {
  const [xid, pid, current, committed, result] = row
  if (current !== 't') return 'stale'
  // Repeated after it was applied: the work is not done twice.
  if (committed === 't') return { result: fromText(result ?? 'null') }
  const transaction = { run, token, backend: { xid: xid ?? '', pid: Number(pid) } }
  held.begun(transaction.backend)
  return perform(db, held, transaction, work, signal)
}

async function perform(
  db: Database,
  held: HeldClient,
  transaction: OpenTransaction,
  work: Work,
  signal: AbortSignal | undefined,
): Promise<TransactResult> {
  const client = new HandlerClient(db.pool, held)
  try {
    const value = await unlessAborted(signal, async () => work(client.tx))
    client.close()
    const result = toJson(value, 'the result of transaction()')
    const { run, token, backend } = transaction
    const marks = `${db.text(COMMIT)}(${run}, ${token}, '${backend.xid}', ${textLiteral(toText(result))}); commit`
    signal?.throwIfAborted()
    const problem = await held.commit(marks)
    if (problem === undefined) return { result }
    if (sqlState(problem) === STALE) return 'stale'
    if (isDecided(problem)) throw explained(problem, client.problem)
    const outcome = await commitOutcome(db, transaction, problem, signal)
    if (outcome === 'stale') return 'stale'
    if (outcome === 'committed') return { result }
    throw held.problem ?? storeError(problem, db.schema)
  } catch (error) {
    // A callback that met a closed connection says only that; the server has said why.
    throw held.problem ?? error
  } finally {
    client.close()
  }
}

/** The work's value, or the signal's reason, whichever comes first. */
function unlessAborted(signal: AbortSignal | undefined, work: () => Promise<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const abort = () => reject(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    work()
      .then(resolve, reject)
      .finally(() => signal?.removeEventListener('abort', abort))
  })
}

/** The server has refused to commit. Anything else may have come after the commit. */
function isDecided(error: unknown): boolean {
  const state = sqlState(error)
  return state !== undefined && !/^(08|57P|E)/.test(state)
}

/** Why the server would not commit, in words; what the user's own constraints say, as it is. */
function explained(error: unknown, earlier: unknown): unknown {
  const state = sqlState(error)
  if (state === ENDED_ITSELF) {
    return failure(
      'OPTION_INVALID',
      'transaction(): the callback ended the transaction itself, so what it had written by then is not tied to the run; leave begin, commit and rollback to Belfry',
      { cause: error },
    )
  }
  if (state !== IN_FAILED_TRANSACTION) return error
  const why = earlier instanceof Error ? ` (${earlier.message})` : ''
  return failure(
    'TRANSACTION_ABORTED',
    `transaction(): a statement failed${why} and the callback went on, but Postgres commits nothing after that; let the error out, or put a savepoint before the statement`,
    { cause: earlier ?? error },
  )
}

const IN_FAILED_TRANSACTION = '25P02'
