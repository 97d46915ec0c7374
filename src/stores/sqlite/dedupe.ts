import type { RunRecord } from './run-row.js'
import type { Tx } from './tx.js'

const FIND = 'select run from belfry_dedupes where target = ? and dedupe = ? and (until is null or until > ?)'

/** The run whose dedupe key refuses another one, if any does. */
export function dedupeOf({ db, now }: Tx, target: string, dedupe: string): number | undefined {
  return db.get<[number]>(FIND, target, dedupe, now)?.[0]
}

const OPEN = 'insert or replace into belfry_dedupes (target, dedupe, run, until) values (?, ?, ?, null)'

/** While the run is unfinished, its key refuses. */
export function openDedupe({ db }: Tx, target: string, dedupe: string | null, run: number): void {
  if (dedupe !== null) db.run(OPEN, target, dedupe, run)
}

const DROP = 'delete from belfry_dedupes where target = ? and dedupe = ? and run = ?'
const CLOSE = 'update belfry_dedupes set until = ? where target = ? and dedupe = ? and run = ?'

/** After its end it refuses for as long as was asked for, whether or not the run stays in the history. */
export function closeDedupe({ db, now }: Tx, { target, dedupe, dedupeMs, id }: RunRecord): void {
  if (dedupe === null) return
  if (dedupeMs <= 0) db.run(DROP, target, dedupe, id)
  else db.run(CLOSE, now + dedupeMs, target, dedupe, id)
}
