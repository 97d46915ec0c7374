/**
 * `transaction()`: commits a handler's own writes together with the success of its run.
 *
 *     begin.sql        begins, and checks whether the attempt still has the run
 *     the callback     writes what it wants over `tx`: a guarded client (`handler-client.ts`)
 *     commit-run.sql   locks the run's row and marks it with the attempt's token, or fails
 *     commit           travels in the same message as the mark
 *
 * The run stays running until its handler returns, and keeps its key and its place in the schedule until then. Whatever
 * ends a marked attempt ends its run as succeeded.
 *
 * What can go wrong, and what happens then:
 * - **The process is stopped past its lease**, at any point. The run's next attempt has another token, so the mark
 *   finds no row and everything is rolled back: `stale`. The process cannot be stopped between the mark and the commit,
 *   because both are one message.
 * - **The process is stopped in its callback.** The server ends a transaction that is idle for 15 s, which frees its
 *   row locks.
 * - **The reply to the commit is lost.** `commit-outcome.ts` asks the server for the outcome, over another connection.
 * - **The call is repeated** after it had committed: the mark is found, and the recorded result is returned.
 * - **The connection is half-open.** `transaction-connection.ts` detects that and closes it.
 * - **The attempt is lost, or fenced, while the callback runs.** The signal fires: the connection is closed, its server
 *   process is ended, and the call rejects. A commit that has already been sent may finish.
 */

import { toJson } from '../../../core/checks/json.js'
import { failure } from '../../../core/errors.js'
import type { AttemptRef } from '../../../core/instances/instance.js'
import { runNumber } from '../../../core/runs/run-id.js'
import { fromText, toText } from '../../../core/runs/stored-text.js'
import type { TransactResult } from '../../../core/store.js'
import { unlessAborted } from '../../../core/unless-aborted.js'
import type { Database, Row } from '../connection/database.js'
import { textLiteral } from '../connection/driver.js'
import { sqlState, storeError } from '../connection/errors.js'
import beginSql from './begin.sql'
import { commitOutcome, type OpenTransaction } from './commit-outcome.js'
import { HandlerClient } from './handler-client.js'
import { TransactionConnection } from './transaction-connection.js'
import type { TransactionSlots } from './transaction-slots.js'

type Work = (tx: unknown) => unknown

/** One call of `transaction()`. */
interface Call {
  readonly db: Database
  readonly run: string
  readonly token: number
  readonly work: Work
  readonly signal: AbortSignal | undefined
  /** Lets the next handler take a connection. */
  readonly freeSlot: () => void
}

export async function transactRun(
  db: Database,
  slots: TransactionSlots,
  { run: id, token }: AttemptRef,
  work: Work,
  signal?: AbortSignal,
): Promise<TransactResult> {
  const run = String(runNumber(id))
  const freeSlot = await slots.take(signal)
  const call: Call = { db, run, token, work, signal, freeSlot }
  try {
    // Nothing has been written yet, so if the connection breaks here, another one is tried.
    const { connection, row } = await db.attempt(() => begin(call))
    try {
      return await transactOn(connection, call, row)
    } finally {
      await connection.giveBack()
    }
  } finally {
    freeSlot()
  }
}

async function begin({ db, run, token, signal }: Call) {
  const connection = await TransactionConnection.open(db, signal)
  const [row = []] = await connection.begin(
    db.text(beginSql).replaceAll(':run', run).replaceAll(':token', String(token)),
  )
  return { connection, row }
}

async function transactOn(connection: TransactionConnection, call: Call, row: Row): Promise<TransactResult> {
  const [number, process, isCurrent, hasCommitted, result] = row
  if (isCurrent !== 't') return 'stale'
  if (hasCommitted === 't') return { result: fromText(result ?? 'null') }
  const backend = { xid: number ?? '', pid: Number(process) }
  connection.hasBegun(backend)
  const client = new HandlerClient(call.db.pool, connection)
  try {
    return await workAndCommit(connection, client, call, { run: call.run, token: call.token, backend })
  } catch (error) {
    // The callback's error says only that the connection was closed; `connection.problem` says why.
    throw connection.problem ?? error
  } finally {
    client.close()
  }
}

async function workAndCommit(
  connection: TransactionConnection,
  client: HandlerClient,
  { db, work, signal, freeSlot }: Call,
  transaction: OpenTransaction,
): Promise<TransactResult> {
  signal?.throwIfAborted()
  const value = await unlessAborted((async () => work(client.tx))(), signal)
  client.close()
  const result = toJson(value, 'the result of transaction()')
  signal?.throwIfAborted()
  const { run, token, backend } = transaction
  const mark = `select belfry.commit_run(${run}, ${token}, '${backend.xid}', `
  const reply = await connection.commit(`${db.text(mark)}${textLiteral(toText(result))}); commit`)
  if (reply === 'committed') return { result }
  if (sqlState(reply.problem) === STALE) return 'stale'
  if (reply.isRefused) throw explained(reply.problem, client.problem)
  freeSlot()
  const outcome = await commitOutcome(db, transaction, reply.problem, signal)
  if (outcome === 'stale') return 'stale'
  if (outcome === 'committed') return { result }
  throw storeError(reply.problem, db.schema)
}

/** Explains why the server refused to commit. An error of the user's own constraints is returned unchanged. */
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
/** SQLSTATEs that `commit-run.sql` raises. */
const STALE = 'BF001'
const ENDED_ITSELF = 'BF002'
