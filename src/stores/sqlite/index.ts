/**
 * The SQLite store: everything in one file, which any number of processes of one host may share. `store.ts` is the table of
 * contents, `schema/` has the tables, and `connection/file.ts` explains how the file is shared.
 */
export type { BetterSqliteHandle, NodeSqliteHandle, SqliteHandle, SqliteTransaction } from './connection/driver.js'
export type { SqliteOptions } from './options.js'
export { type MigrateOptions, migrateSqlite } from './schema/migrate-file.js'
export { sqlite } from './store.js'
