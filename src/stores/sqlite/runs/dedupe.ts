import { change, row } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import source from './dedupe.sql'
import type { RunName, RunRow } from './run-codec.js'

type Name = { target: string; dedupe: string }

/** The run that holds a dedupe key, if there is one. */
export const dedupeOf = row<Name, RunName>(source, 'findDedupe')
const open = change<Name & RunName>(source, 'openDedupe')
const close = change<Name & { run: number; until: number }>(source, 'closeDedupe')
const drop = change<Name & { run: number }>(source, 'dropDedupe')

/** While the run is unfinished, its dedupe key refuses others. */
export function openDedupe(tx: Tx, { id, mark, target, dedupe }: RunName & Pick<RunRow, 'target' | 'dedupe'>): void {
  if (dedupe !== null) open(tx, { target, dedupe, id, mark })
}

/** After the run's end the key refuses others for the time that was asked for, even if the history does not keep the run. */
export function closeDedupe(tx: Tx, { id: run, target, dedupe, dedupe_ms }: RunRow): void {
  if (dedupe === null) return
  if (dedupe_ms === null || dedupe_ms <= 0) drop(tx, { target, dedupe, run })
  else close(tx, { target, dedupe, run, until: tx.now + dedupe_ms })
}
