/** What the store reads about the session of each new connection, and which sessions it refuses. */
import { failure } from '../../../core/errors.js'
import type { PgClient, Row } from './driver.js'
import { unusableServer } from './errors.js'

/**
 * Every name is schema-qualified, because the session's search_path may find other functions before the built-in ones.
 */
export const SESSION = `select pg_catalog.current_setting('server_version_num'),
  pg_catalog.current_setting('server_version'), pg_catalog.current_setting('server_encoding'),
  pg_catalog.current_setting('default_transaction_isolation'), pg_catalog.pg_backend_pid(),
  pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('default_transaction_read_only'),
  pg_catalog.array_to_string(pg_catalog.current_schemas(true), ',')`

export interface Session {
  /**
   * Whether a statement may run without `begin`. Otherwise each runs in a transaction that sets isolation and
   * search_path.
   */
  readonly isPlain: boolean
  /** Whether the connection reaches the server itself. A pooler announces a process id other than the server's. */
  readonly isDirect: boolean
}

/** Other encodings lack characters, so a text with such a character could not be stored. */
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

/** Skips the schema of temporary tables, because Postgres never looks for functions or operators there. */
function findsBuiltInsFirst(schemas: string): boolean {
  return schemas.split(',').find((schema) => !schema.startsWith('pg_temp')) === 'pg_catalog'
}
