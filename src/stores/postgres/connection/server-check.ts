/** What the store needs of the server, asked once when the store is opened. */
import { failure } from '../../../core/errors.js'
import type { Row } from './driver.js'

export const SERVER_SETTINGS = `select current_setting('server_version_num'), current_setting('server_version'),
  current_setting('server_encoding'), current_setting('default_transaction_isolation'), pg_backend_pid()`

export interface ServerFacts {
  readonly isReadCommitted: boolean
  /** The process of the session that answered. */
  readonly session: number
}

/** With any other encoding, a text that holds a character it lacks could not be stored. */
const ENCODINGS: ReadonlySet<unknown> = new Set(['UTF8', 'SQL_ASCII'])

export function checkServer([number, version, encoding, isolation, session]: Row): ServerFacts {
  if (Number(number) < 130_000) {
    throw failure('UNSUPPORTED', `the Postgres store needs Postgres 13 or newer, and this is ${version}`)
  }
  if (!ENCODINGS.has(encoding)) {
    throw failure(
      'UNSUPPORTED',
      `the Postgres store needs a database whose encoding is UTF8, and this one has ${encoding}: make one with create database … encoding 'UTF8' template template0`,
    )
  }
  return { isReadCommitted: isolation === 'read committed', session: Number(session) }
}
