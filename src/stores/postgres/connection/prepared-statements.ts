/**
 * Names of prepared statements. Postgres parses and plans a named statement once per connection. For a small query that
 * is most of its cost: inspecting a lock takes 0.2 ms instead of 1 ms, reading the time 0.2 ms instead of 0.35 ms.
 *
 * - Postgres may keep a plan that it made while the tables were empty. So only statements with a single sensible plan
 *   are named: they look up each item of a list by an index, and contain no join whose order the planner could change.
 * - Names belong to a session. Behind a pooler each transaction may run in another session, so names are used only on
 *   connections to the server itself.
 * - The server may not know a name, or know another statement by it, after `discard all` or behind a pooler that was
 *   not recognised. It then refuses the statement without executing it. The statement is sent again without a name, and
 *   from then on no statement gets a name.
 */
import { createHash } from 'node:crypto'
import type { Query } from './driver.js'
import { sqlState } from './errors.js'

/** SQLSTATEs: the name is unknown; the name is already in use; the result columns have changed with the tables. */
const NAME_ERRORS: ReadonlySet<string> = new Set(['26000', '42P05', '0A000'])

/** An upper bound. There are fewer operations than this. */
const MAX_NAMES = 64

export class PreparedStatements {
  readonly #names = new Map<string, string>()
  #isRefused = false

  /**
   * Gives the query a name, unless the server has refused a name before. The name is a hash of the text, so stores that
   * share a pool use the same name for the same statement.
   */
  named(query: Query): Query {
    const known = this.#names.get(query.text)
    if (this.#isRefused || (known === undefined && this.#names.size >= MAX_NAMES)) return query
    const name = known ?? `belfry_${createHash('sha256').update(query.text).digest('hex').slice(0, 24)}`
    this.#names.set(query.text, name)
    return { ...query, name }
  }

  /**
   * Whether a statement failed because of its name. The first such failure ends the use of names; statements that are
   * already in flight may still fail this way.
   */
  isRefused(error: unknown, { name }: Query): boolean {
    if (name === undefined || !NAME_ERRORS.has(sqlState(error) ?? '')) return false
    this.#isRefused = true
    return true
  }
}
