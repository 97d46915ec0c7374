import { failure } from '../../../core/errors.js'
import type { NewRun } from '../../../core/runs/run.js'
import type { EnqueueResult } from '../../../core/store.js'
import { Connection } from '../connection/connection.js'
import { driverOf, isHandle } from '../connection/driver.js'
import { fileError } from '../connection/errors.js'
import type { SqliteFile } from '../connection/file.js'
import { newTx } from '../connection/tx.js'
import { atOnce } from '../connection/write-queue.js'
import { passOn } from '../locks/pass-on.js'
import { enqueueRuns } from '../runs/enqueue.js'

/** Enqueues inside the caller's transaction: the runs become visible when it commits. */
export function enqueueInside(file: SqliteFile, runs: readonly NewRun[], handle: unknown): readonly EnqueueResult[] {
  const db = callersConnection(handle)
  if (db.fileName() !== file.name()) {
    throw failure('OPTION_INVALID', 'enqueue: `tx` is a handle on another file than the store’s')
  }
  const tx = newTx(db, file.now(), new Set())
  db.exec('savepoint belfry_enqueue')
  try {
    const results = atOnce(enqueueRuns(tx, runs))
    passOn(tx)
    db.exec('release belfry_enqueue')
    return results
  } catch (error) {
    db.exec('rollback to belfry_enqueue; release belfry_enqueue')
    throw fileError(error, file.name())
  }
}

const known = new WeakMap<object, Connection>()

function callersConnection(handle: unknown): Connection {
  if (!isHandle(handle)) {
    throw failure('OPTION_INVALID', 'enqueue: `tx` must be a SQLite handle that has a transaction open')
  }
  const made = known.get(handle) ?? new Connection(driverOf(handle))
  known.set(handle, made)
  if (made.driver.inTransaction !== false) return made
  throw failure('OPTION_INVALID', 'enqueue: `tx` has no transaction open: begin one first, or enqueue without it')
}
