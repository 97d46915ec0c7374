import { type CallerTransaction, rowsIn } from './caller-transaction.js'

/** What is called of a transaction of Knex. */
export interface KnexTransaction {
  raw(sql: string, bindings: readonly string[]): PromiseLike<unknown>
}

/** `knex.transaction((trx) => job.enqueue(payload, { tx: fromKnex(trx) }))` */
export function fromKnex(trx: KnexTransaction): CallerTransaction {
  return {
    // Its parameters have no numbers: they are used in the order in which they stand.
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
