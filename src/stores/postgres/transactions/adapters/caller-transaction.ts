/**
 * The caller's own transaction, as `enqueue(…, { tx })` takes it. A client of `pg` can be passed as it is; the adapters
 * wrap transactions of other libraries. Statements have parameters like `$1`.
 */
export interface CallerTransaction {
  query(sql: string, values: string[]): PromiseLike<{ readonly rows: readonly unknown[] }>
}

/** Some libraries return the driver's result, which has `rows`; others return the rows themselves. */
export function rowsIn(answer: unknown): { readonly rows: readonly unknown[] } {
  if (Array.isArray(answer)) return { rows: answer }
  const rows = (answer as { readonly rows?: unknown } | null | undefined)?.rows
  return { rows: Array.isArray(rows) ? rows : [] }
}
