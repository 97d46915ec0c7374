import { textLiteral } from '../../connection/driver.js'
import { type CallerTransaction, rowsIn } from './caller-transaction.js'

/** What is called of a transaction of Drizzle, over any of its drivers for Postgres. */
export interface DrizzleTransaction {
  execute(sql: string): PromiseLike<unknown>
}

/** `db.transaction((tx) => job.enqueue(payload, { tx: fromDrizzle(tx) }))` */
export function fromDrizzle(tx: DrizzleTransaction): CallerTransaction {
  return {
    // Parameters would need Drizzle's own `sql`, so the values are put into the text.
    query: async (sql, values) =>
      rowsIn(await tx.execute(sql.replaceAll(/\$(\d+)/g, (_, place: string) => textLiteral(values[+place - 1] ?? '')))),
  }
}
