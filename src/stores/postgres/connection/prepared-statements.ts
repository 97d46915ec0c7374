/**
 * Names of prepared statements. A statement that has one is parsed and planned once on each connection, which is a good
 * part of what a small one costs. Its plan may be of a time when the tables were empty, so it must be one that leaves no
 * choice: lists go one after the other through an index, never in a join that could be turned round. Names belong to a session, so they are only used where connections are known to reach
 * the server itself: a pooler announces a number of its own making for the session.
 *
 * If the server does not know a name all the same, or knows it as something else (somebody has cleared the session, or
 * there is a pooler of a kind that cannot be told), nothing was done: names are given up, and the statement is sent anew.
 */
import { createHash } from 'node:crypto'
import type { PgClient } from './database.js'
import { sqlState } from './errors.js'

/** No such statement, there is one already, and one whose columns have changed with the tables. */
const TROUBLES: ReadonlySet<string> = new Set(['26000', '42P05', '0A000'])

/** More than there are operations. */
const MOST = 64

export class StatementNames {
  readonly #names = new Map<string, string>()
  #used = false

  /** Undefined for one that is sent without. Equal texts have equal names, so several stores may share a connection. */
  of(text: string): string | undefined {
    if (!this.#used) return undefined
    const known = this.#names.get(text)
    if (known !== undefined || this.#names.size >= MOST) return known
    const name = `belfry_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`
    this.#names.set(text, name)
    return name
  }

  /** Uses names if this connection is to the server itself, whose session has this number. */
  tell({ processID }: PgClient, session: number): void {
    this.#used = typeof processID === 'number' && processID === session
  }

  /** Whether connections are known to reach the server itself. */
  get reachServer(): boolean {
    return this.#used
  }

  /** Whether the error of a statement is about its name. Then there are none any more. */
  giveUp(error: unknown, name: string | undefined): boolean {
    // Not whether they are still used: several that were under way may be refused, one after the other.
    if (name === undefined || !TROUBLES.has(sqlState(error) ?? '')) return false
    this.#used = false
    return true
  }
}
