/**
 * The stored layout of a schedule, which is in the hash `schedules` under its id:
 *
 *     allow 1763522623000001 {"createdAt":1763522623000,"cursor":1763522623000,"nextAt":1763526223000,"dueAt":1763526223000}
 *     {"timeline":{"every":3600000},"target":{"job":"mail"}}
 *     {"to":"ada@example.org"}
 *
 * 1. its overlap policy, its version, and its progress along the timeline
 * 2. its definition without policy and payload, and without fields that have their default, because there may be
 *    millions of schedules
 * 3. its payload
 *
 * The planner needs only the first two lines. Any change to the schedule changes the first line, because it has the
 * version and the cursor. Scripts read the first word, insert the version (`write.lua`) and replace the first line
 * (`record-ticks.lua`).
 */
import { DEFAULT_MISSED, type Overlap } from '../../../core/policies.js'
import { fromText, toText } from '../../../core/runs/stored-text.js'
import type { Schedule, ScheduleDefinition } from '../../../core/schedules/schedule.js'

type Unversioned = Omit<Schedule, 'version'>

/**
 * The first line after policy and version. `anchor` and `updatedAt` are left out when they equal `createdAt`, as usual.
 */
export function progressText({ id: _, definition: __, ...progress }: Unversioned): string {
  const { createdAt, anchor, updatedAt } = progress
  const other = (at: number) => (at === createdAt ? undefined : at)
  return JSON.stringify({ ...progress, version: undefined, anchor: other(anchor), updatedAt: other(updatedAt) })
}

export function firstLine(schedule: Schedule): string {
  return `${schedule.definition.overlap} ${schedule.version} ${progressText(schedule)}`
}

const USUAL = { missed: DEFAULT_MISSED, jitterMs: 0, priority: 0, keep: 'all', onFinish: 'remove' } as const
const USUAL_TEXTS = new Map<string, string>(Object.entries(USUAL).map(([name, value]) => [name, JSON.stringify(value)]))

/** The second and third line of the text. */
export function definitionText({ payload, overlap: _, ...definition }: ScheduleDefinition): string {
  const unusual = Object.entries(definition).filter(([name, value]) => USUAL_TEXTS.get(name) !== JSON.stringify(value))
  return `${JSON.stringify(Object.fromEntries(unusual))}\n${toText(payload)}`
}

const FIRST_LINE = /^(\S+) (\d+) (.*)$/

/** Parses the text. Without the third line, the payload is null. */
export function toSchedule(id: string, stored: string): Schedule {
  const [head = '', unusual = '{}', payload = 'null'] = stored.split('\n')
  const [, overlap = 'allow', version, progress = '{}'] = FIRST_LINE.exec(head) ?? []
  const moved = JSON.parse(progress) as Unversioned
  // `Object.assign` instead of spreads, because this runs once for each tick and spreads take five times as long.
  const definition: ScheduleDefinition = Object.assign({}, USUAL, JSON.parse(unusual), {
    overlap: overlap as Overlap,
    payload: fromText(payload),
  })
  const { createdAt } = moved
  return Object.assign({ id, version: Number(version), definition, anchor: createdAt, updatedAt: createdAt }, moved)
}

/** When a schedule finished that is removed together with its history. Undefined for other schedules. */
export function goesAt({ finishedAt, definition }: Pick<Schedule, 'finishedAt' | 'definition'>): number | undefined {
  return definition.onFinish === 'remove' && definition.app === undefined ? finishedAt : undefined
}
