/**
 * The handler's transaction: its own writes and the fact that its run has succeeded, in one commit.
 *
 * It begins with the write lock, so nobody else changes the run meanwhile. The last statement before the commit marks
 * the run as committed, if the attempt is still the one that has it; zero rows roll everything back. The run stays
 * running until its handler has returned, and with it its key and its place in the schedule; from here on, whatever
 * ends the attempt (settle, takeover, reset) ends the run as succeeded.
 */
import { failure } from '../../core/errors.js'
import type { AttemptRef } from '../../core/instance.js'
import { type Json, toJson } from '../../core/json.js'
import type { TransactResult } from '../../core/store.js'
import { fromText, toText } from '../../core/stored-text.js'
import type { Connection } from './connection.js'
import { loadRun, runNumber } from './run-write.js'
import { isCurrent } from './settle.js'

const COMMIT_RUN = `update belfry_runs set committed = 1, result = ?
  where id = ?2 and token = ?3 and state = 2 and committed = 0
  and (key is null or exists (select 1 from belfry_leases l where l.run = ?2 and l.token = ?3))`

type Work = (tx: unknown) => unknown

/** The work has only begun: the caller must see to it that it cannot go on. */
export class PromiseRefused extends Error {}

/** One transaction, from begin to commit, without a pause. Errors after its begin are answers: it is not tried again. */
export function transactRun(
  db: Connection,
  { run: id, token }: AttemptRef,
  work: Work,
): TransactResult | { readonly error: unknown } {
  // Refused before it begins: on a handle of the user's, what it does after its first await could not be undone.
  if (Object.prototype.toString.call(work) === '[object AsyncFunction]') return { error: promiseRefused() }
  const number = runNumber(id)
  if (number === undefined) return 'stale'
  db.begin()
  try {
    const result = perform(db, number, token, work)
    db.run(result === 'stale' ? 'rollback' : 'commit')
    return result
  } catch (error) {
    rollBack(db)
    return { error }
  }
}

/** Some errors have rolled back already, and so may have the callback. */
function rollBack(db: Connection): void {
  if (db.driver.inTransaction === false) return
  try {
    db.run('rollback')
  } catch (error) {
    if (db.driver.inTransaction !== undefined) throw error
  }
}

function perform(db: Connection, id: number, token: number, work: Work): TransactResult {
  const run = loadRun({ db }, id)
  if (run === undefined || !isCurrent(db, run, token)) return 'stale'
  // Repeated after it was applied: the work is not done twice.
  if (run.committed) return { result: run.result === null ? null : fromText(run.result) }
  db.exec(`savepoint ${MARK}`)
  const result = jsonOf(whileOpen(db.driver.handle as { close?: unknown }, work))
  checkMark(db)
  return db.run(COMMIT_RUN, toText(result), id, token) === 1 ? { result } : 'stale'
}

/** The handle cannot be closed meanwhile: that would leave the transaction open, and the file locked, with nobody there. */
function whileOpen(handle: { close?: unknown }, work: Work): unknown {
  const own = Object.getOwnPropertyDescriptor(handle, 'close')
  handle.close = () => {
    throw failure('OPTION_INVALID', 'transaction(): the connection is not yours to close; leave that to Belfry')
  }
  try {
    return work(handle)
  } finally {
    // Mostly the method of its class is what is then there again.
    if (own === undefined) delete handle.close
    else Object.defineProperty(handle, 'close', own)
  }
}

/** Goes with the transaction that it was set in: a callback that has ended that one and begun another has none. */
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
  // Its end interests nobody any more, but must not end the process.
  Promise.resolve(value).catch(() => {})
  throw new PromiseRefused()
}

export function promiseRefused() {
  return failure(
    'OPTION_INVALID',
    'transaction(): on SQLite the callback must be synchronous, because the file has one writer; await before it, not in it',
  )
}
