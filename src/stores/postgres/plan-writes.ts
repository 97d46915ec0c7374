import type { Plan } from '../../core/plan.js'
import { numberArray, sparseArray, sparseTexts, textArray } from './connection/array-text.js'
import type { Due } from './due-schedule.js'

type Numbers = (number | string | undefined)[]

/** What the plans of a batch come to, column by column. */
export class PlanWrites {
  readonly #now: number
  readonly #schedules = { rows: [] as string[], cursor: [] as Numbers, remaining: [] as Numbers, next: [] as Numbers }
  readonly #ends = { due: [] as Numbers, finished: [] as Numbers }
  readonly #ticks = { definition: [] as Numbers, at: [] as Numbers, ready: [] as Numbers, startBy: [] as Numbers }
  readonly #waits: ('t' | undefined)[] = []
  readonly #skips = { schedule: [] as string[], from: [] as Numbers, to: [] as Numbers, count: [] as Numbers }
  readonly #reasons: string[] = []
  readonly #retracts = { schedule: [] as string[], through: [] as Numbers }
  readonly #ways: string[] = []
  readonly #behind = new Set<string>()
  readonly #keys = new Set<string>()
  readonly #madeFrom = { schedules: [] as string[], unfinished: [] as (string | null)[] }

  constructor(now: number) {
    this.#now = now
  }

  add({ row, id, definition, cursor, mindsOverlap, unfinished }: Due, plan: Plan, key: string | undefined): void {
    if (mindsOverlap) {
      this.#madeFrom.schedules.push(id)
      this.#madeFrom.unfinished.push(unfinished)
    }
    // Cursors only grow.
    if (plan.cursor >= cursor) {
      this.#schedules.rows.push(row)
      this.#schedules.cursor.push(plan.cursor)
      this.#schedules.remaining.push(plan.remaining)
      this.#schedules.next.push(plan.nextAt)
      this.#ends.due.push(plan.dueAt)
      this.#ends.finished.push(plan.nextAt === undefined ? this.#now : undefined)
    }
    for (const { at, readyAt, startBy, waits } of plan.ticks) {
      // Behind the cursor a tick is accounted for, for ever.
      if (at <= cursor) continue
      this.#ticks.definition.push(definition)
      this.#ticks.at.push(at)
      this.#ticks.ready.push(readyAt === at ? undefined : readyAt)
      this.#ticks.startBy.push(startBy)
      this.#waits.push(waits ? 't' : undefined)
      if (waits) this.#behind.add(id)
      if (key !== undefined) this.#keys.add(key)
    }
    for (const { from, to, count, reason } of plan.skips) {
      this.#skips.schedule.push(id)
      this.#skips.from.push(from)
      this.#skips.to.push(to)
      this.#skips.count.push(count)
      this.#reasons.push(reason)
    }
    if (plan.retractThrough !== undefined) {
      this.#retracts.schedule.push(id)
      this.#retracts.through.push(plan.retractThrough)
    }
    if (plan.cancelUnfinished) this.#ways.push(id)
  }

  /** How many ticks were skipped, without those of schedules whose plans were not written. */
  skippedBut(stale: readonly string[]): number {
    const { schedule, count } = this.#skips
    const left = new Set(stale)
    return count.reduce<number>((sum, each, at) => sum + (left.has(schedule[at] ?? '') ? 0 : Number(each)), 0)
  }

  arrays(): string[] {
    const { rows, cursor, remaining, next } = this.#schedules
    const { definition, at, ready, startBy } = this.#ticks
    const { schedule, from, to, count } = this.#skips
    return [
      ...[textArray(rows), numberArray(cursor), sparseArray(remaining), numberArray(next)],
      ...[numberArray(this.#ends.due), sparseArray(this.#ends.finished)],
      ...[numberArray(definition), numberArray(at), sparseArray(ready), sparseArray(startBy), sparseArray(this.#waits)],
      ...[textArray(schedule), numberArray(from), numberArray(to), numberArray(count), textArray(this.#reasons)],
      ...[textArray(this.#retracts.schedule), numberArray(this.#retracts.through)],
      ...[textArray(this.#ways), textArray([...this.#behind]), textArray([...this.#keys])],
      ...[textArray(this.#madeFrom.schedules), sparseTexts(this.#madeFrom.unfinished)],
    ]
  }
}
