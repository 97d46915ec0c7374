import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The path of a new database in a temporary folder. */
export function temporaryFile(): { path: string; remove: () => Promise<void> } {
  const folder = mkdtempSync(join(tmpdir(), 'belfry-'))
  return { path: join(folder, 'belfry.db'), remove: () => rm(folder, { recursive: true, force: true }) }
}
