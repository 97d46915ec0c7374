import { statement } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import source from './dedupe.sql'
import type { RunName, RunRow } from './run-codec.js'

type Name = { target: string; dedupe: string }

const findDedupe = statement<Name & { now: number }, RunName>(source, 'findDedupe')
const open = statement<Name & RunName>(source, 'openDedupe')
const close = statement<Name & { run: number; until: number }>(source, 'closeDedupe')
const drop = statement<Name & { run: number }>(source, 'dropDedupe')

/** The run that holds this dedupe key, if there is one. */
export function dedupeOf({ db, now }: Tx, target: string, dedupe: string): RunName | undefined {
  return db.get(findDedupe, { target, dedupe, now })
}

/** While the run is unfinished, its dedupe key refuses others. */
export function openDedupe({ db }: Tx, target: string, dedupe: string | null, { id, mark }: RunName): void {
  if (dedupe !== null) db.run(open, { target, dedupe, id, mark })
}

/** After the run's end the key refuses others for the time that was asked for, even if the history does not keep the run. */
export function closeDedupe({ db, now }: Tx, { id: run, target, dedupe, dedupe_ms }: RunRow): void {
  if (dedupe === null) return
  if (dedupe_ms === null || dedupe_ms <= 0) db.run(drop, { target, dedupe, run })
  else db.run(close, { target, dedupe, run, until: now + dedupe_ms })
}
