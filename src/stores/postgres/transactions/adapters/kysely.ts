import type { CallerTransaction } from './caller-transaction.js'

interface CompiledQuery {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly query: {
    readonly kind: 'RawNode'
    readonly sqlFragments: readonly string[]
    readonly parameters: readonly never[]
  }
  readonly queryId: { readonly queryId: string }
}

/** The methods of a Kysely transaction that Belfry uses. */
export interface KyselyTransaction {
  executeQuery(query: CompiledQuery): PromiseLike<{ readonly rows: readonly unknown[] }>
}

/** `db.transaction().execute((trx) => job.enqueue(payload, { tx: fromKysely(trx) }))` */
export function fromKysely(trx: KyselyTransaction): CallerTransaction {
  return {
    query: (sql, parameters) =>
      trx.executeQuery({
        sql,
        parameters,
        query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
        queryId: { queryId: globalThis.crypto.randomUUID() },
      }),
  }
}
