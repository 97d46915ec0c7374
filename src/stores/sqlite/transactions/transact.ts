/**
 * The handler's transaction: its own writes and the success of its run, in one commit.
 *
 * It begins with the write lock, so no other process changes the run meanwhile. The last statement before the commit marks the
 * run as committed, if the attempt still has it; zero rows roll everything back. The run stays running until its handler has
 * returned, and keeps its key and its place in the schedule. From the commit on, whatever ends the attempt (settle, takeover,
 * reset) ends the run as succeeded.
 */

import { type Json, toJson } from '../../../core/checks/json.js'
import { failure } from '../../../core/errors.js'
import type { AttemptRef } from '../../../core/instances/instance.js'
import { runNumber } from '../../../core/runs/run-id.js'
import { fromText, toText } from '../../../core/runs/stored-text.js'
import type { TransactResult } from '../../../core/store.js'
import type { Connection } from '../connection/connection.js'
import { change } from '../connection/statements.js'
import { isCurrent, runById } from '../runs/transitions.js'
import source from './transact.sql'

const commitRun = change<{ run: number; token: number; result: string }>(source, 'commitRun')

type Work = (tx: unknown) => unknown

/** The callback returned a promise and goes on: the caller must close the connection to stop its writes. */
export class PromiseRefused extends Error {}

/** One transaction, from begin to commit, in one turn. Errors after `begin` are returned: a busy error would be tried again. */
export function transactRun(
  db: Connection,
  { run: id, token }: AttemptRef,
  work: Work,
): TransactResult | { readonly error: unknown } {
  // An async callback is refused before it begins: on the user's handle, writes after its first await could not be undone.
  if (Object.prototype.toString.call(work) === '[object AsyncFunction]') return { error: promiseRefused() }
  const number = runNumber(id)
  db.begin()
  try {
    const result = perform(db, number, token, work)
    db.exec(result === 'stale' ? 'rollback' : 'commit')
    return result
  } catch (error) {
    rollBack(db)
    return { error }
  }
}

/** Some errors have rolled back already, and the callback may have done so too. */
function rollBack(db: Connection): void {
  if (db.driver.inTransaction === false) return
  try {
    db.exec('rollback')
  } catch (error) {
    if (db.driver.inTransaction !== undefined) throw error
  }
}

function perform(db: Connection, id: number, token: number, work: Work): TransactResult {
  const run = runById({ db }, { id })
  if (run === undefined || !isCurrent({ db }, run, token)) return 'stale'
  // The work has committed before: it is not repeated.
  if (run.committed === 1) return { result: run.result === null ? null : fromText(run.result) }
  db.exec(`savepoint ${MARK}`)
  const result = jsonOf(whileOpen(db.driver.handle as { close?: unknown }, work))
  checkMark(db)
  return commitRun({ db }, { run: id, token, result: toText(result) }) === 1 ? { result } : 'stale'
}

/** Runs the work with a handle that it cannot close: libsql would leave the transaction open, and the file locked. */
function whileOpen(handle: { close?: unknown }, work: Work): unknown {
  const own = Object.getOwnPropertyDescriptor(handle, 'close')
  handle.close = () => {
    throw failure('OPTION_INVALID', 'transaction(): the connection is not yours to close; leave that to Belfry')
  }
  try {
    return work(handle)
  } finally {
    // Without the property the method of the class is visible again.
    if (own === undefined) delete handle.close
    else Object.defineProperty(handle, 'close', own)
  }
}

/** A savepoint that proves at the end that the callback has not ended the transaction: releasing it would fail. */
const MARK = 'belfry_transaction'

function checkMark(db: Connection): void {
  try {
    db.exec(`release ${MARK}`)
  } catch (cause) {
    throw failure(
      'OPTION_INVALID',
      'transaction(): the callback ended the transaction itself, and what it committed by that stands without the run; leave begin, commit and rollback to Belfry',
      { cause },
    )
  }
}

function jsonOf(value: unknown): Json {
  if (typeof (value as { then?: unknown } | undefined | null)?.then !== 'function') {
    return toJson(value, 'the result of transaction()')
  }
  // An unhandled rejection would end the process.
  Promise.resolve(value).catch(() => {})
  throw new PromiseRefused()
}

export function promiseRefused() {
  return failure(
    'OPTION_INVALID',
    'transaction(): on SQLite the callback must be synchronous, because the file has one writer; await before it, not in it',
  )
}
