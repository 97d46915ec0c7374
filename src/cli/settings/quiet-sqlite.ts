/** Node 22 warns that its own SQLite is experimental: true, and nothing to who watches a demo. */
export function quietSqlite(): void {
  const emitWarning = process.emitWarning.bind(process) as (...args: unknown[]) => void
  process.emitWarning = (...args: unknown[]) => {
    if (!String(args[0]).startsWith('SQLite is an experimental feature')) emitWarning(...args)
  }
}
