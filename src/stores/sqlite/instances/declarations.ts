import type { DeclaredSet } from '../../../core/store.js'
import { statement } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import source from './declarations.sql'
import { type DeclaredRow, toDeclared } from './instance-codec.js'

type Declaration = { app: string; hash: string; release: string | null; schedules: string; now: number }

const selectDeclared = statement<{ app: string }, DeclaredRow>(source, 'listDeclared')
const declareStatement = statement<Declaration>(source, 'declareSet')
const noteAliveStatement = statement<{ app: string; hash: string; now: number }>(source, 'noteAlive')

export function listDeclared({ db }: Snapshot, app: string): DeclaredSet[] {
  return db.all(selectDeclared, { app }).map(toDeclared)
}

export function declareSet(
  { db, now }: Tx,
  app: string,
  { hash, release = null, schedules }: Pick<DeclaredSet, 'hash' | 'schedules'> & { readonly release?: string | null },
): void {
  db.run(declareStatement, { app, hash, release, schedules: JSON.stringify(schedules), now })
}

/** Notes that a live instance declares this set. */
export function noteAlive({ db, now }: Tx, app: string | null, declarations: string | null): void {
  if (app !== null && declarations !== null) db.run(noteAliveStatement, { app, hash: declarations, now })
}
