/**
 * A transaction of the caller's, as far as Belfry needs it: `enqueue(…, { tx })` takes one. A client of `pg` is one as it
 * is, and the adapters make one of what other libraries call a transaction. Statements have parameters like `$1`.
 */
export interface CallerTransaction {
  query(sql: string, values: string[]): PromiseLike<{ readonly rows: readonly unknown[] }>
}

/** Libraries answer with the result of their driver, which has `rows`, or with the rows themselves. */
export function rowsIn(answer: unknown): { readonly rows: readonly unknown[] } {
  if (Array.isArray(answer)) return { rows: answer }
  const rows = (answer as { readonly rows?: unknown } | null | undefined)?.rows
  return { rows: Array.isArray(rows) ? rows : [] }
}
