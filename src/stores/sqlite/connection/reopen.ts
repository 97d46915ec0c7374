import type { NoSource, StoreSource } from '../../../core/instances/beat-store.js'
import type { ParsedSqliteOptions, SqliteOptions } from '../options.js'

/** How the beat thread opens the same file. */
export function reopen({ path, database, busyMs }: ParsedSqliteOptions): StoreSource | NoSource {
  if (database !== undefined) {
    return { because: 'the SQLite store was given a handle, which belongs to this thread; pass the `path` of the file' }
  }
  const options: SqliteOptions = { path, busyMs }
  return { module: new URL('./beat-store.js', import.meta.url).href, options }
}
