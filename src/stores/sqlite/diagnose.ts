import type { Check } from '../../core/diagnosis.js'
import { type Nothing, row, rows } from './connection/statements.js'
import type { Snapshot } from './connection/tx.js'
import source from './diagnose.sql'
import { INDEXES, SCHEMA_VERSION } from './schema/migrate.js'

const versions = row<Nothing, { sqlite: string; schema: number }>(source, 'versions')
const presentIndexes = rows<Nothing, { name: string }>(source, 'presentIndexes')
const fileSize = row<Nothing, { pages: number; free: number; page_size: number }>(source, 'fileSize')

/** A vacuum is worth it when more than half of the file is empty, and the empty part is larger than this. */
const MUCH_BYTES = 64 * 2 ** 20

export function diagnose(snapshot: Snapshot): readonly Check[] {
  const { sqlite = '', schema = 0 } = versions(snapshot, {}) ?? {}
  const about = `SQLite ${sqlite}, tables of version ${schema}`
  const newer = schema > SCHEMA_VERSION
  const findings = newer
    ? [
        {
          what: `the file is of version ${schema}, and this release knows ${SCHEMA_VERSION}`,
          fix: 'upgrade belfry here',
        },
      ]
    : []
  return [{ name: 'store', about, findings }, indexes(snapshot), bloat(snapshot)]
}

function indexes(snapshot: Snapshot): Check {
  const present = new Set(presentIndexes(snapshot, {}).map(({ name }) => name))
  const findings = [...INDEXES]
    .filter(([name]) => !present.has(name))
    .map(([name, sql]) => ({
      what: `the index ${name} is missing: looking there gets slow`,
      fix: `sqlite3 FILE "${sql}"`,
    }))
  return { name: 'indexes', about: `${INDEXES.size - findings.length} of ${INDEXES.size} are there`, findings }
}

function bloat(snapshot: Snapshot): Check {
  const { pages = 0, free = 0, page_size = 0 } = fileSize(snapshot, {}) ?? {}
  const about = `${megabytes(pages * page_size)}, of which ${megabytes(free * page_size)} are empty`
  const isMuch = free * page_size > MUCH_BYTES && free > pages / 2
  const fix = 'stop the processes that use it, then: sqlite3 FILE vacuum'
  return { name: 'bloat', about, findings: isMuch ? [{ what: `the file has ${about}`, fix }] : [] }
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MB`
}
