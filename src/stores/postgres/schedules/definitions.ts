import type { Mutable } from '../../../core/mutable.js'
import type { Plannable } from '../../../core/schedules/plan.js'
import type { ScheduleDefinition } from '../../../core/schedules/schedule.js'
import type { Transaction } from '../connection/database.js'
import { type Due, definitionOf } from './schedule-codec.js'

const LOAD = `select d.id, d.body from pg_catalog.unnest($1::bigint[]) as g(id)
  cross join lateral (select id, body from belfry.definitions where id = g.id limit 1) d`

/**
 * Definitions that were read before. A row of theirs is never changed, only replaced by one with another number, so what
 * is known stays true. The payload is not among what planning needs.
 */
export class Definitions {
  readonly #known = new Map<number, ScheduleDefinition>()
  /** Thousands of schedules that differ by nothing but their names and payloads share one. */
  readonly #bodies = new Map<string, ScheduleDefinition>()
  readonly #most: number

  constructor(most = 20_000) {
    this.#most = most
  }

  /** The name that its runs must hold. */
  keyOf({ definition }: Due): string | undefined {
    const { key } = this.#get(definition)
    return key === undefined || key === 'unstamped' ? undefined : key.name
  }

  /** A due schedule as the planner sees it. Field by field: this is done once a tick. */
  plannable({ id, definition, anchor, cursor, remaining }: Due): Plannable {
    const known = this.#get(definition)
    const { timeline, overlap, missed, jitterMs } = known
    const schedule: Mutable<Plannable> = { id, timeline, anchor, cursor, overlap, missed, jitterMs }
    if (known.startsAt !== undefined) schedule.startsAt = known.startsAt
    if (known.endsAt !== undefined) schedule.endsAt = known.endsAt
    if (known.deadlineMs !== undefined) schedule.deadlineMs = known.deadlineMs
    if (remaining !== undefined) schedule.remaining = remaining
    return schedule
  }

  async load(tx: Transaction, ids: readonly number[]): Promise<void> {
    const missing = ids.filter((id) => !this.#known.has(id))
    if (missing.length === 0) return
    if (this.#known.size + missing.length > this.#most) this.#forget(new Set(ids))
    for (const [id, body] of await tx.run(LOAD, [missing])) this.#known.set(Number(id), this.#parse(body ?? '{}'))
  }

  #get(definition: number): ScheduleDefinition {
    const known = this.#known.get(definition)
    if (known === undefined) throw new Error(`definition ${definition} is gone although its schedule is locked`)
    return known
  }

  #parse(body: string): ScheduleDefinition {
    const known = this.#bodies.get(body)
    if (known !== undefined) return known
    if (this.#bodies.size >= this.#most) this.#bodies.clear()
    const definition = definitionOf(body, 'null')
    this.#bodies.set(body, definition)
    return definition
  }

  /** The oldest go first, but none that is needed now. */
  #forget(needed: ReadonlySet<number>): void {
    for (const id of this.#known.keys()) {
      if (this.#known.size <= this.#most / 2) return
      if (!needed.has(id)) this.#known.delete(id)
    }
  }
}
