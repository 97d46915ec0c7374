/**
 * The message of a run, which its handler or its sink gets. All four fields are the same in every attempt, so a receiver
 * recognises a repeated delivery by the id.
 *
 *     { "id": "digest/eu-1772355600", "generated_at": "2026-03-01T09:00:00.000Z", "schedule_id": "digest/eu", "payload": … }
 */
import type { Json } from '../checks/json.js'
import type { Run } from './run.js'

export interface Message {
  readonly id: string
  /** The nominal tick, not the time of delivery. ISO 8601, UTC. */
  readonly generated_at: string
  readonly schedule_id?: string
  readonly payload: Json
}

export function messageOf(run: Run): Message {
  const { schedule, payload } = run
  const [id, generated_at] = [eventId(run), nominalTime(run)]
  return schedule === undefined ? { id, generated_at, payload } : { id, generated_at, schedule_id: schedule, payload }
}

/** Caches the newest text: many ticks fall on the same instant, and `toISOString` costs more than the rest of a message. */
let last = { at: Number.NaN, text: '' }

export function nominalTime({ tick, createdAt }: Run): string {
  const at = tick ?? createdAt
  if (at !== last.at) last = { at, text: new Date(at).toISOString() }
  return last.text
}

/**
 * The id of a tick is `<schedule>-<unix>`, of a trigger `<schedule>-<unix>-t-<run>`, of a backfill's run
 * `<schedule>-<unix>-b-<backfill>`.
 */
export function eventId({ id, schedule, tick, origin, backfill }: Run): string {
  if (schedule === undefined || tick === undefined) return id
  const base = `${schedule}-${Math.floor(tick / 1_000)}`
  if (origin === 'trigger') return `${base}-t-${id}`
  return origin === 'backfill' ? `${base}-b-${backfill}` : base
}
