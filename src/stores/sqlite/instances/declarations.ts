import type { DeclaredSet } from '../../../core/store.js'
import { change, rows } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import source from './declarations.sql'

type DeclaredRow = {
  hash: string
  release: string | null
  /** A JSON list of ids. */
  schedules: string
  first_seen_at: number
  alive_at: number
}
type Declaration = { app: string; hash: string; release: string | null; schedules: string }

const selectDeclared = rows<{ app: string }, DeclaredRow>(source, 'listDeclared')
const insertDeclared = change<Declaration>(source, 'declareSet')
const writeAlive = change<{ app: string; hash: string }>(source, 'noteAlive')

export function listDeclared(snapshot: Snapshot, app: string): DeclaredSet[] {
  return selectDeclared(snapshot, { app }).map(({ hash, release, schedules, first_seen_at, alive_at }) => ({
    ...{ hash, schedules: JSON.parse(schedules) as string[], firstSeenAt: first_seen_at, aliveAt: alive_at },
    ...(release === null ? {} : { release }),
  }))
}

export function declareSet(
  tx: Tx,
  app: string,
  { hash, release = null, schedules }: Pick<DeclaredSet, 'hash' | 'schedules'> & { readonly release?: string | null },
): void {
  insertDeclared(tx, { app, hash, release, schedules: JSON.stringify(schedules) })
}

/** Notes that a live instance declares this set. */
export function noteAlive(tx: Tx, app: string | null, declarations: string | null): void {
  if (app !== null && declarations !== null) writeAlive(tx, { app, hash: declarations })
}
