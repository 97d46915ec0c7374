import { type CallerTransaction, rowsIn } from './caller-transaction.js'

/** The methods of a Knex transaction that Belfry uses. */
export interface KnexTransaction {
  raw(sql: string, bindings: readonly string[]): PromiseLike<unknown>
}

/** `knex.transaction((trx) => job.enqueue(payload, { tx: fromKnex(trx) }))` */
export function fromKnex(trx: KnexTransaction): CallerTransaction {
  return {
    // Knex has no numbered parameters: each `$1` becomes a `?`, with its value at that place.
    query: async (sql, values) => {
      const used: string[] = []
      const text = sql.replaceAll(/\$(\d+)/g, (_, place: string) => {
        used.push(values[+place - 1] ?? '')
        return '?'
      })
      return rowsIn(await trx.raw(text, used))
    },
  }
}
