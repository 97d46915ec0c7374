/** Plans as the arguments of the script that writes them. */

import type { Mutable } from '../../../core/mutable.js'
import type { Plan } from '../../../core/plan.js'
import type { AdvanceRequest } from '../../../core/store.js'
import { word } from '../schema/words.js'
import type { Template } from './definitions.js'
import { type Due, plannableOf, unfinishedRuns } from './due-schedules.js'
import { goesAt, rangeArgs } from './schedule-changes.js'
import { type Head, movingFrom, movingText } from './schedule-codec.js'

/** What a stretch of plans has in common, in the order in which the script reads it. */
interface Alike {
  readonly place: string
  readonly tick: number
  readonly readyAt: number
  readonly startBy: number | undefined
  readonly dueAt: number
  /** The end of the first line before and after. */
  readonly from: string
  readonly to: string
}

export class PlanArgs {
  readonly #templates = new Map<Template, string>()
  readonly #ids: string[] = []
  readonly #plans: string[] = []
  #alike: Alike | undefined
  #starts: string[] = []
  #moved: { readonly plan: Plan; readonly text: string } | undefined

  /** Plans a schedule and adds what comes of it. */
  add(due: Due, { plan, lookaheadMs }: AdvanceRequest, now: number): void {
    const planned = plan(plannableOf(due), unfinishedRuns(due.unfinishedText), now, now + lookaheadMs)
    this.#ids.push(due.id)
    if (!this.#addAlike(due, planned)) this.#addAlone(due, planned, now)
  }

  /** All of it, with from where to number, and the mark to remove. */
  args(from: number, mark: string): readonly string[] {
    this.#endStretch()
    const templates = [...this.#templates.keys()].flatMap(({ args }) => args)
    const counts = [String(from), mark, String(this.#templates.size)]
    return [...counts, ...templates, String(this.#ids.length), ...this.#ids, ...this.#plans]
  }

  /** One tick, the next one known, and nothing else to mind. */
  #addAlike({ id, line, head, known: { template, overlap } }: Due, plan: Plan): boolean {
    const [tick] = plan.ticks
    const { dueAt, nextAt } = plan
    if (tick === undefined || dueAt === undefined || nextAt === undefined || overlap !== 'allow') return false
    if (plan.ticks.length > 1 || plan.skips.length > 0 || template.keyed || plan.retractThrough !== undefined)
      return false
    if (tick.at <= head.cursor || tick.at <= head.createdAt || plan.cancelUnfinished || word(id) !== id) return false
    const { at, readyAt, startBy } = tick
    const start = movingFrom(line)
    const from = `${line.slice(start)}\n`
    const to = this.#movedTo(plan, head)
    const place = this.#placeOf(template)
    const same = this.#alike
    const joins =
      same !== undefined &&
      same.place === place &&
      same.tick === at &&
      same.readyAt === readyAt &&
      same.startBy === startBy &&
      same.dueAt === dueAt &&
      same.from === from &&
      same.to === to
    if (!joins) {
      this.#endStretch()
      this.#alike = { place, tick: at, readyAt, startBy, dueAt, from, to }
    }
    this.#starts.push(line.slice(0, start))
    return true
  }

  /** Schedules that stand at the same instants move to the same. */
  #movedTo(plan: Plan, head: Head): string {
    const last = this.#moved
    if (
      last !== undefined &&
      plan.remaining === undefined &&
      last.plan.remaining === undefined &&
      head.pausedAt === undefined &&
      last.plan.cursor === plan.cursor &&
      last.plan.nextAt === plan.nextAt &&
      last.plan.dueAt === plan.dueAt
    )
      return last.text
    const text = movingText({ ...plan, ...(head.pausedAt === undefined ? {} : { pausedAt: head.pausedAt }) })
    if (head.pausedAt === undefined) this.#moved = { plan, text }
    return text
  }

  #endStretch(): void {
    if (this.#alike === undefined) return
    const { place, tick, readyAt, startBy, dueAt, from, to } = this.#alike
    this.#plans.push('=', String(this.#starts.length), place, String(tick), String(readyAt), String(startBy ?? '-'))
    this.#plans.push(String(dueAt), from, to, this.#starts.join('\n'))
    this.#alike = undefined
    this.#starts = []
  }

  #addAlone({ line, head, known, unfinishedText }: Due, plan: Plan, now: number): void {
    this.#endStretch()
    // A plan made from an older reading moves nothing back: cursors only grow.
    const moved = plan.cursor < head.cursor ? head : movedBy(head, plan, now)
    const goes = goesAt({ finishedAt: moved.finishedAt, definition: known.body } as Parameters<typeof goesAt>[0])
    // Compared with its line's end, so that no line is taken for a longer one.
    this.#plans.push('x', `${line}\n`, unfinishedText, this.#placeOf(known.template))
    this.#plans.push(
      line.slice(0, movingFrom(line)) + movingText(moved),
      String(moved.dueAt ?? '-'),
      String(goes ?? '-'),
    )
    this.#plans.push(String(plan.retractThrough ?? '-'), plan.cancelUnfinished ? '1' : '0', ticksText(head, plan))
    this.#plans.push(plan.skips.flatMap(rangeArgs).join(' '))
  }

  #placeOf(template: Template): string {
    const known = this.#templates.get(template)
    if (known !== undefined) return known
    const place = String(this.#templates.size + 1)
    this.#templates.set(template, place)
    return place
  }
}

function movedBy(head: Head, { cursor, remaining, nextAt, dueAt }: Plan, now: number): Head {
  const { overlap, version, anchor, createdAt, updatedAt, pausedAt } = head
  const moved: Mutable<Head> = { overlap, version, anchor, createdAt, updatedAt, cursor }
  if (pausedAt !== undefined) moved.pausedAt = pausedAt
  if (remaining !== undefined) moved.remaining = remaining
  if (nextAt === undefined) moved.finishedAt = now
  else moved.nextAt = nextAt
  if (dueAt !== undefined) moved.dueAt = dueAt
  return moved
}

function ticksText({ cursor, createdAt }: Head, { ticks }: Plan): string {
  let text = ''
  for (const { at, readyAt, startBy, waits } of ticks) {
    // A tick is unique by its instant: while its run is known, and behind the cursor for ever.
    if (at <= cursor) continue
    const flags = `${at <= createdAt ? 'k' : ''}${waits ? 'w' : ''}`
    text += `${text === '' ? '' : ' '}${at} ${readyAt === at ? '=' : readyAt} ${startBy ?? '-'} ${flags === '' ? '-' : flags}`
  }
  return text
}
