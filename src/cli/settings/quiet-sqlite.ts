/** Hides Node 22's warning that node:sqlite is experimental: users of a command cannot act on it. */
export function quietSqlite(): void {
  const emitWarning = process.emitWarning.bind(process) as (...args: unknown[]) => void
  process.emitWarning = (...args: unknown[]) => {
    if (!String(args[0]).startsWith('SQLite is an experimental feature')) emitWarning(...args)
  }
}
