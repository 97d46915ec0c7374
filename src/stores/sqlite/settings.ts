import type { Frozen } from '../../core/store.js'
import type { Connection } from './connection.js'
import type { Tx } from './tx.js'

const FREEZE = `insert or ignore into belfry_settings (name, value) values ('frozen', ?)`

export function freeze({ db, now }: Tx, note: string | undefined): void {
  db.run(FREEZE, JSON.stringify({ at: now, ...(note === undefined ? {} : { note }) } satisfies Frozen))
}

const THAW = `delete from belfry_settings where name = 'frozen'`

export function thaw({ db, wakes }: Tx): void {
  db.run(THAW)
  wakes.add('runs')
}

const FROZEN = `select value from belfry_settings where name = 'frozen'`

export function frozen(db: Connection): Frozen | undefined {
  const row = db.get<[string]>(FROZEN)
  return row === undefined ? undefined : (JSON.parse(row[0]) as Frozen)
}
