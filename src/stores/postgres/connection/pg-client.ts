/** What is called of the driver: of a pool, of its clients, and of what they answer. */

/** Values come as the text that the server sent, in the order of the columns. */
export type Row = readonly (string | null)[]

export interface Query {
  readonly text: string
  /** Of a prepared statement. */
  readonly name?: string
  readonly values?: readonly unknown[]
  readonly rowMode: 'array'
  readonly types: { getTypeParser(): (value: string) => unknown }
}

interface Result {
  readonly rows: readonly unknown[]
}

/** What is called of a client of `pg`, and of anything that follows it. */
export interface PgClient {
  /** The number of the session, as it was announced when the connection was made. */
  readonly processID?: number | null
  /** What the server last said of the transaction: `I` for none. */
  getTransactionStatus?(): string | null
  /** Where older drivers tell the same. */
  readonly connection?: {
    on(event: 'readyForQuery', listener: (message: { readonly status?: string }) => void): unknown
  }
  query(query: Query): Promise<Result | readonly Result[]>
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  release(broken?: boolean): void
}

export interface PgPool {
  readonly options?: { readonly max?: number | undefined }
  connect(): Promise<PgClient>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'acquire', listener: (client: PgClient) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'acquire', listener: (client: PgClient) => void): unknown
  end(): Promise<void>
}

const RAW: Query['types'] = { getTypeParser: () => (value) => value }

/** A statement whose answer comes as rows of texts. */
export function rawQuery(text: string, values?: readonly unknown[]): Query {
  return { text, ...(values === undefined ? {} : { values }), rowMode: 'array', types: RAW }
}

export function rowsOf(result: Result | readonly Result[]): readonly Row[] {
  const last = Array.isArray(result) ? (result as readonly Result[]).at(-1) : (result as Result)
  return (last?.rows ?? []) as readonly Row[]
}
