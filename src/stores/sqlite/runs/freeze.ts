import type { Frozen } from '../../../core/store.js'
import { type Nothing, statement } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import source from './freeze.sql'

const freezeStatement = statement<{ value: string }>(source, 'freeze')
const thawStatement = statement(source, 'thaw')
const frozenStatement = statement<Nothing, { value: string }>(source, 'frozen')

export function freeze({ db, now }: Tx, note: string | undefined): void {
  const value: Frozen = { at: now, ...(note === undefined ? {} : { note }) }
  db.run(freezeStatement, { value: JSON.stringify(value) })
}

export function thaw({ db, wakes }: Tx): void {
  db.run(thawStatement, {})
  wakes.add('runs')
}

export function frozen({ db }: Snapshot): Frozen | undefined {
  const row = db.get(frozenStatement, {})
  return row === undefined ? undefined : (JSON.parse(row.value) as Frozen)
}
