import { textLiteral } from '../../connection/driver.js'
import { type CallerTransaction, rowsIn } from './caller-transaction.js'

/** What Belfry calls of a Drizzle transaction, with any of its Postgres drivers. */
export interface DrizzleTransaction {
  execute(sql: string): PromiseLike<unknown>
}

/** `db.transaction((tx) => job.enqueue(payload, { tx: fromDrizzle(tx) }))` */
export function fromDrizzle(tx: DrizzleTransaction): CallerTransaction {
  return {
    // Parameters need Drizzle's own `sql`, so the values become part of the text.
    query: async (sql, values) =>
      rowsIn(await tx.execute(sql.replaceAll(/\$(\d+)/g, (_, place: string) => textLiteral(values[+place - 1] ?? '')))),
  }
}
