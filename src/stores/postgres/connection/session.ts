/** What the store needs to know of a session, asked once for each new connection, and what it refuses. */
import { failure } from '../../../core/errors.js'
import type { PgClient, Row } from './driver.js'
import { unusableServer } from './errors.js'

/** Every name is qualified: the session may find other functions before the built-in ones. */
export const SESSION = `select pg_catalog.current_setting('server_version_num'),
  pg_catalog.current_setting('server_version'), pg_catalog.current_setting('server_encoding'),
  pg_catalog.current_setting('default_transaction_isolation'), pg_catalog.pg_backend_pid(),
  pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('default_transaction_read_only'),
  pg_catalog.array_to_string(pg_catalog.current_schemas(true), ',')`

export interface Session {
  /** Whether a single statement may run as it is. Otherwise each needs a transaction with settings of its own. */
  readonly isPlain: boolean
  /** Whether the connection reaches the server itself: a pooler announces a process number of its own. */
  readonly isDirect: boolean
}

/** With any other encoding, a text that holds a character it lacks could not be stored. */
const ENCODINGS: ReadonlySet<unknown> = new Set(['UTF8', 'SQL_ASCII'])

export function readSession({ processID }: PgClient, row: Row): Session {
  const [number, version, encoding, isolation, pid, isStandby, isReadOnly, schemas] = row
  if (Number(number) < 140_000) {
    throw failure('UNSUPPORTED', `the Postgres store needs Postgres 14 or newer, and this is ${version}`)
  }
  if (!ENCODINGS.has(encoding)) {
    throw failure(
      'UNSUPPORTED',
      `the Postgres store needs a database whose encoding is UTF8, and this one has ${encoding}: make one with create database … encoding 'UTF8' template template0`,
    )
  }
  if (isStandby === 't') {
    throw unusableServer(
      'the Postgres server is a standby, which takes no writes: connect to the primary, or wait until this one is promoted',
    )
  }
  if (isReadOnly === 'on') {
    throw unusableServer(
      'the Postgres database lets this role only read: default_transaction_read_only is on for the role, the database or the server',
    )
  }
  const isPlain = isolation === 'read committed' && findsBuiltInsFirst(schemas ?? '')
  return { isPlain, isDirect: typeof processID === 'number' && processID === Number(pid) }
}

/** No functions or operators are looked for in the schema of temporary tables. */
function findsBuiltInsFirst(schemas: string): boolean {
  return schemas.split(',').find((schema) => !schema.startsWith('pg_temp')) === 'pg_catalog'
}
