import { failure } from '../../core/errors.js'
import type { Database } from './connection.js'

const SETTINGS = `select current_setting('server_version_num'), current_setting('server_version'),
  current_setting('default_transaction_isolation')`

/** Looks once, when the store is opened, whether the server can keep the promises. */
export async function checkServer(db: Database): Promise<void> {
  const [row = []] = await db.read(SETTINGS)
  const [number, version, isolation] = row
  if (Number(number) < 130_000) {
    throw failure('UNSUPPORTED', `the Postgres store needs Postgres 13 or newer, and this is ${version}`)
  }
  // Functions look again after they have waited for a lock: a snapshot that stands still would show them the past.
  if (isolation !== 'read committed') db.isolate()
}
