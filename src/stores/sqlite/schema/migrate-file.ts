/** `belfry migrate`: brings a file up to date without starting anything on it. */
import { existsSync } from 'node:fs'
import type { MigrationReport } from '../../../core/store.js'
import { checkPath } from '../connection/check-path.js'
import { Connection } from '../connection/connection.js'
import { openDriver } from '../connection/driver.js'
import { fileError } from '../connection/errors.js'
import { OpenFile } from '../connection/open-file.js'
import { parseSqliteOptions } from '../options.js'
import { checkVersion, migrationSql, SCHEMA_VERSION, schemaVersion } from './migrate.js'

export interface MigrateOptions {
  readonly path: string
  /** Only reports the statements, and changes nothing. */
  readonly dryRun?: boolean
}

export async function migrateSqlite({ path, dryRun = false }: MigrateOptions): Promise<MigrationReport> {
  const from = dryRun ? foundVersion(path) : await openedVersion(path)
  return { from, to: SCHEMA_VERSION, sql: migrationSql(from) }
}

async function openedVersion(path: string): Promise<number> {
  const file = new OpenFile(parseSqliteOptions({ path }))
  await file.open()
  await file.close()
  return file.foundVersion
}

/** A missing file must not be opened, because that would create it. */
function foundVersion(path: string): number {
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
