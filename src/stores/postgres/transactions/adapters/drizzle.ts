import { textLiteral } from '../../connection/driver.js'
import { type CallerTransaction, rowsIn } from './caller-transaction.js'

/** The methods of a Drizzle transaction that Belfry uses, with any of Drizzle's Postgres drivers. */
export interface DrizzleTransaction {
  execute(sql: string): PromiseLike<unknown>
}

/** `db.transaction((tx) => job.enqueue(payload, { tx: fromDrizzle(tx) }))` */
export function fromDrizzle(tx: DrizzleTransaction): CallerTransaction {
  return {
    // Only Drizzle's own `sql` can pass parameters, so the values become part of the text.
    query: async (sql, values) =>
      rowsIn(await tx.execute(sql.replaceAll(/\$(\d+)/g, (_, place: string) => textLiteral(values[+place - 1] ?? '')))),
  }
}
