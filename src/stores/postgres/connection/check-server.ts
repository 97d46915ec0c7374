import { failure } from '../../../core/errors.js'
import type { Database } from './database.js'

const SETTINGS = `select current_setting('server_version_num'), current_setting('server_version'),
  current_setting('default_transaction_isolation'), current_setting('server_encoding')`

/** Those that have every character, or mind none. In any other, one that it lacks could never be written down. */
const ENCODINGS: ReadonlySet<unknown> = new Set(['UTF8', 'SQL_ASCII'])

/** Looks once, when the store is opened, whether the server can keep the promises. */
export async function checkServer(db: Database): Promise<void> {
  const [row = []] = await db.read(SETTINGS)
  const [number, version, isolation, encoding] = row
  if (Number(number) < 130_000) {
    throw failure('UNSUPPORTED', `the Postgres store needs Postgres 13 or newer, and this is ${version}`)
  }
  if (!ENCODINGS.has(encoding)) {
    throw failure(
      'UNSUPPORTED',
      `the Postgres store needs a database whose encoding is UTF8, and this one has ${encoding}: make one with create database … encoding 'UTF8' template template0`,
    )
  }
  // Functions look again after they have waited for a lock: a snapshot that stands still would show them the past.
  if (isolation !== 'read committed') db.isolate()
}
