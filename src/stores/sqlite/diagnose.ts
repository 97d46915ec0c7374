import type { Check } from '../../core/diagnosis.js'
import type { Connection } from './connection.js'
import { INDEXES, SCHEMA_VERSION } from './schema.js'

const VERSION = `select sqlite_version(), (select value from belfry_meta where name = 'schema')`
const PRESENT = `select name from sqlite_master where type = 'index' and name like 'belfry\\_%' escape '\\'`
const PAGES = `select (select page_count from pragma_page_count), (select freelist_count from pragma_freelist_count),
  (select page_size from pragma_page_size)`

/** Worth a vacuum: more than half of the file is empty, and that is this much. */
const MUCH_BYTES = 64 * 2 ** 20

export function diagnose(db: Connection): readonly Check[] {
  const [version = '', schema = 0] = db.get<[string, number]>(VERSION) ?? []
  const about = `SQLite ${version}, tables of version ${schema}`
  const newer = schema > SCHEMA_VERSION
  const findings = newer
    ? [
        {
          what: `the file is of version ${schema}, and this release knows ${SCHEMA_VERSION}`,
          fix: 'upgrade belfry here',
        },
      ]
    : []
  return [{ name: 'store', about, findings }, indexes(db), bloat(db)]
}

function indexes(db: Connection): Check {
  const present = new Set(db.all<[string]>(PRESENT).map(([name]) => name))
  const findings = [...INDEXES]
    .filter(([name]) => !present.has(name))
    .map(([name, sql]) => ({
      what: `the index ${name} is missing: looking there gets slow`,
      fix: `sqlite3 FILE '${sql}'`,
    }))
  return { name: 'indexes', about: `${INDEXES.size - findings.length} of ${INDEXES.size} are there`, findings }
}

function bloat(db: Connection): Check {
  const [pages = 0, free = 0, size = 0] = db.get<[number, number, number]>(PAGES) ?? []
  const about = `${megabytes(pages * size)}, of which ${megabytes(free * size)} are empty`
  const isMuch = free * size > MUCH_BYTES && free > pages / 2
  const fix = 'stop the processes that use it, then: sqlite3 FILE vacuum'
  return { name: 'bloat', about, findings: isMuch ? [{ what: `the file has ${about}`, fix }] : [] }
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MB`
}
