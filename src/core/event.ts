/**
 * What others see of a run: the message that a handler or a sink gets. All four fields are the same in every attempt,
 * so that a receiver can tell a repetition from something new by the id.
 */
import type { Json } from './json.js'
import type { Run } from './run.js'

export interface Message {
  readonly id: string
  /** The nominal tick, not the time of publishing. ISO 8601, UTC. */
  readonly generated_at: string
  readonly schedule_id?: string
  readonly payload: Json
}

export function messageOf(run: Run): Message {
  const { schedule, payload } = run
  const [id, generated_at] = [eventId(run), nominalTime(run)]
  return schedule === undefined ? { id, generated_at, payload } : { id, generated_at, schedule_id: schedule, payload }
}

/** Many ticks fall on one instant, and writing it out costs more than the rest of a message. */
let last = { at: Number.NaN, text: '' }

export function nominalTime({ tick, createdAt }: Run): string {
  const at = tick ?? createdAt
  if (at !== last.at) last = { at, text: new Date(at).toISOString() }
  return last.text
}

/** Ticks `<schedule>-<unix>`, triggers `<schedule>-<unix>-t-<run>`, backfills `<schedule>-<unix>-b-<backfill>`. */
export function eventId({ id, schedule, tick, origin, backfill }: Run): string {
  if (schedule === undefined || tick === undefined) return id
  const base = `${schedule}-${Math.floor(tick / 1_000)}`
  if (origin === 'trigger') return `${base}-t-${id}`
  return origin === 'backfill' ? `${base}-b-${backfill}` : base
}
