import type { Frozen } from '../../../core/store.js'
import { change, type Nothing, row } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import source from './freeze.sql'

const writeFrozen = change<{ value: string }>(source, 'freeze')
const forgetFrozen = change(source, 'thaw')
const selectFrozen = row<Nothing, { value: string }>(source, 'frozen')

export function freeze(tx: Tx, note: string | undefined): void {
  const value: Frozen = { at: tx.now, ...(note === undefined ? {} : { note }) }
  writeFrozen(tx, { value: JSON.stringify(value) })
}

export function thaw(tx: Tx): void {
  forgetFrozen(tx, {})
  tx.wakes.add('runs')
}

export function frozen(snapshot: Snapshot): Frozen | undefined {
  const row = selectFrozen(snapshot, {})
  return row === undefined ? undefined : (JSON.parse(row.value) as Frozen)
}
