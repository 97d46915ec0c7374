import type { PlannedSchedule } from '../../../core/schedules/schedule.js'
import type { Transaction } from '../connection/database.js'
import { columnsOf, integer, text } from '../schema/sql-function.js'

const columns = columnsOf({ id: integer, body: text })
const LOAD = `select ${columns.select('d')} from pg_catalog.unnest($1::bigint[]) as g(id)
  cross join lateral (select id, body from belfry.definitions where id = g.id limit 1) d`

type PlannedDefinition = PlannedSchedule['definition']

/**
 * A cache of definitions by id. The row of a definition never changes; a changed definition gets a new id. So cached
 * entries stay valid.
 */
export class Definitions {
  readonly #known = new Map<number, PlannedDefinition>()
  /** Parsed definitions by their text. Thousands of schedules that differ only in id and payload share one object. */
  readonly #bodies = new Map<string, PlannedDefinition>()
  readonly #most: number

  constructor(most = 20_000) {
    this.#most = most
  }

  async load(tx: Transaction, ids: readonly number[]): Promise<void> {
    const missing = ids.filter((id) => !this.#known.has(id))
    if (missing.length === 0) return
    if (this.#known.size + missing.length > this.#most) this.#forget(new Set(ids))
    for (const { id, body } of (await tx.run(LOAD, [missing])).map(columns.read)) this.#known.set(id, this.#parse(body))
  }

  get(id: number): PlannedDefinition {
    const known = this.#known.get(id)
    if (known === undefined) throw new Error(`definition ${id} is gone although its schedule is locked`)
    return known
  }

  #parse(body: string): PlannedDefinition {
    const known = this.#bodies.get(body)
    if (known !== undefined) return known
    if (this.#bodies.size >= this.#most) this.#bodies.clear()
    const definition = JSON.parse(body) as PlannedDefinition
    this.#bodies.set(body, definition)
    return definition
  }

  /** Forgets the oldest half, except definitions that are needed now. */
  #forget(needed: ReadonlySet<number>): void {
    for (const id of this.#known.keys()) {
      if (this.#known.size <= this.#most / 2) return
      if (!needed.has(id)) this.#known.delete(id)
    }
  }
}
