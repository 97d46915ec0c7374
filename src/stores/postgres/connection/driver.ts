/**
 * The parts of `pg` that Belfry uses, as interfaces, and `pg` itself for users who pass a URL. Any pool with these
 * members works.
 */
import { createRequire } from 'node:module'
import { failure } from '../../../core/errors.js'

/** The column values as texts, as the server sent them. */
export type Row = readonly (string | null)[]

export interface Query {
  readonly text: string
  /** The name of the prepared statement. */
  readonly name?: string
  readonly values?: readonly unknown[]
  readonly rowMode: 'array'
  readonly types: { getTypeParser(): (value: string) => unknown }
}

interface Result {
  readonly rows: readonly unknown[]
}

export interface PgClient {
  /** The id of the session's server process, as announced when the connection was opened. */
  readonly processID?: number | null
  /** The transaction status in the last reply: `I` outside of a transaction. */
  getTransactionStatus?(): string | null
  /** Older drivers report the transaction status only by this event. */
  readonly connection?: {
    on(event: 'readyForQuery', listener: (message: { readonly status?: string }) => void): unknown
  }
  query(query: Query): Promise<Result | readonly Result[]>
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  /** Gives the client back to the pool, or closes it. */
  release(close?: boolean): void
}

export interface PgPool {
  readonly options?: { readonly max?: number | undefined }
  /** How many open connections are not in use. */
  readonly idleCount?: number
  connect(): Promise<PgClient>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'acquire', listener: (client: PgClient) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'acquire', listener: (client: PgClient) => void): unknown
  end(): Promise<void>
}

/** A client outside of any pool. */
export interface DirectClient {
  readonly processID?: number | null
  connect(): Promise<unknown>
  query(sql: string): Promise<{ readonly rows: readonly unknown[] }>
  on(event: 'notification', listener: (message: { readonly payload?: string | undefined }) => void): unknown
  on(event: 'error' | 'end', listener: () => void): unknown
  /** Lets the process exit although the client is connected. */
  unref?(): void
  end(): Promise<void>
}

/** Keeps the driver from parsing values: each operation decodes its texts itself. */
const RAW: Query['types'] = { getTypeParser: () => (value) => value }

export function rawQuery(text: string, values?: readonly unknown[]): Query {
  return { text, ...(values === undefined ? {} : { values }), rowMode: 'array', types: RAW }
}

/**
 * A text as part of a statement that cannot have parameters. It is encoded as base64, whose alphabet has no quote and
 * no backslash, so the text cannot end the literal, whatever the server's settings say about backslashes.
 */
export function textLiteral(text: string): string {
  return `pg_catalog.convert_from(pg_catalog.decode('${Buffer.from(text, 'utf8').toString('base64')}', 'base64'), 'UTF8')`
}

/** The rows of the last statement, if the text has several statements. */
export function rowsOf(result: Result | readonly Result[]): readonly Row[] {
  const last = Array.isArray(result) ? (result as readonly Result[]).at(-1) : (result as Result)
  return (last?.rows ?? []) as readonly Row[]
}

interface Pg {
  readonly Pool: new (options: Readonly<Record<string, unknown>>) => PgPool
  readonly Client: new (options: Readonly<Record<string, unknown>>) => DirectClient
}

const CONNECTION = { connectionTimeoutMillis: 5_000, keepAlive: true } as const

/** Idle connections do not keep the process alive. */
export function newPool(options: Readonly<Record<string, unknown>>): PgPool {
  return new (loadPg().Pool)({ max: 10, allowExitOnIdle: true, ...CONNECTION, ...options })
}

export function newClient(url: string): DirectClient {
  return new (loadPg().Client)({ connectionString: url, ...CONNECTION })
}

function loadPg(): Pg {
  try {
    return createRequire(import.meta.url)('pg') as Pg
  } catch (cause) {
    throw failure('UNSUPPORTED', 'the Postgres store needs the driver `pg` for a url: npm install pg', { cause })
  }
}
