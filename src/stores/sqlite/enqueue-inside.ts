import { failure } from '../../core/errors.js'
import type { NewRun } from '../../core/run.js'
import type { EnqueueResult } from '../../core/store.js'
import { Connection } from './connection.js'
import { driverOf, isHandle } from './driver.js'
import { enqueueRuns } from './enqueue.js'
import type { SqliteFile } from './file.js'
import { fileError } from './file-errors.js'
import { newTx } from './tx.js'
import { atOnce } from './write-queue.js'

const SAME_FILE = `select file from pragma_database_list where name = 'main'`

/** Makes runs inside a transaction of the caller's: they are there when it commits. */
export function enqueueInside(file: SqliteFile, runs: readonly NewRun[], handle: unknown): readonly EnqueueResult[] {
  const db = callersConnection(handle)
  if (db.get<[string]>(SAME_FILE)?.[0] !== file.name()) {
    throw failure('OPTION_INVALID', 'enqueue: `tx` is a handle on another file than the store’s')
  }
  const tx = newTx(db, file.now(), new Set())
  db.run('savepoint belfry_enqueue')
  try {
    const results = atOnce(enqueueRuns(tx, runs))
    tx.counters.flush()
    db.run('release belfry_enqueue')
    return results
  } catch (error) {
    db.run('rollback to belfry_enqueue')
    db.run('release belfry_enqueue')
    throw fileError(error, file.name() ?? 'of the store')
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
