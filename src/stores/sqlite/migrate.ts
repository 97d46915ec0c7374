/** Bringing a file up to date without using it: what `belfry migrate` does. A store does the same when it is opened. */
import { existsSync } from 'node:fs'
import type { MigrationReport } from '../../core/store.js'
import { checkPath } from './check-path.js'
import { Connection, openDriver } from './connection.js'
import { fileError } from './file-errors.js'
import { OpenFile } from './open-file.js'
import { checkVersion, migrationSql, SCHEMA_VERSION, schemaVersion } from './schema.js'
import { parseSqliteOptions } from './sqlite-options.js'

export interface MigrateOptions {
  readonly path: string
  /** Only say what would be done. */
  readonly dryRun?: boolean
}

export async function migrateSqlite({ path, dryRun = false }: MigrateOptions): Promise<MigrationReport> {
  const from = dryRun ? versionOf(path) : await opened(path)
  return { from, to: SCHEMA_VERSION, sql: migrationSql(from) }
}

async function opened(path: string): Promise<number> {
  const file = new OpenFile(parseSqliteOptions({ path }))
  await file.open()
  await file.close()
  return file.foundVersion
}

/** To look at a file that is not there would make it. */
function versionOf(path: string): number {
  if (!existsSync(path)) return 0
  checkPath(path)
  try {
    const db = new Connection(openDriver(path))
    try {
      const version = schemaVersion(db, path)
      checkVersion(version, path)
      return version
    } finally {
      db.close()
    }
  } catch (error) {
    throw fileError(error, path)
  }
}
