import type { Frozen } from '../../../core/store.js'
import type { Database } from '../connection/database.js'

const FREEZE = `insert into belfry.settings (name, value)
  select 'frozen', pg_catalog.json_build_object('at', belfry.now_us() / 1000, 'note', $1::text)::text on conflict (name) do nothing`

export async function freezeStore(db: Database, note: string | undefined): Promise<void> {
  await db.write(FREEZE, [note === undefined ? null : JSON.stringify(note)])
}

const THAW = `delete from belfry.settings where name = 'frozen'`

export async function thawStore(db: Database): Promise<void> {
  await db.write(THAW)
  db.announce(['runs'])
}

const FROZEN = `select value from belfry.settings where name = 'frozen'`

export async function frozenSince(db: Database): Promise<Frozen | undefined> {
  const [row] = await db.read(FROZEN)
  if (row === undefined) return undefined
  const { at, note } = JSON.parse(row[0] ?? '{}') as { readonly at: number; readonly note: string | null }
  return note === null ? { at } : { at, note: JSON.parse(note) as string }
}
