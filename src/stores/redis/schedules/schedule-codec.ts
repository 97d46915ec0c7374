/**
 * The stored layout of a schedule, as the hash `schedules` has it:
 *
 *     allow 1763522623000001 {"createdAt":1763522623000,"cursor":1763522623000,"nextAt":1763526223000,"dueAt":1763526223000}
 *     {"timeline":{"every":3600000},"target":{"job":"mail"}}
 *     {"to":"ada@example.org"}
 *
 * 1. its overlap policy, its version, and where its timeline has got to
 * 2. its definition without policy, payload and what is usual, because there are millions of them
 * 3. its payload
 *
 * The first two lines are what the planner needs; together they tell whether anything has changed. Scripts read the first
 * word, put the version in (`write.lua`) and replace the first line (`record-ticks.lua`).
 */
import { DEFAULT_MISSED, type Overlap } from '../../../core/policies.js'
import { fromText, toText } from '../../../core/runs/stored-text.js'
import type { Schedule, ScheduleDefinition } from '../../../core/schedules/schedule.js'

type Unversioned = Omit<Schedule, 'version'>

/** What the first line has behind policy and version. The anchor and the last change are usually those of the creation. */
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

/** The second and third line. */
export function definitionText({ payload, overlap: _, ...definition }: ScheduleDefinition): string {
  const unusual = Object.entries(definition).filter(([name, value]) => USUAL_TEXTS.get(name) !== JSON.stringify(value))
  return `${JSON.stringify(Object.fromEntries(unusual))}\n${toText(payload)}`
}

const FIRST_LINE = /^(\S+) (\d+) (.*)$/

/** Without the third line, the payload is null. */
export function toSchedule(id: string, stored: string): Schedule {
  const [head = '', unusual = '{}', payload = 'null'] = stored.split('\n')
  const [, overlap = 'allow', version, progress = '{}'] = FIRST_LINE.exec(head) ?? []
  const moved = JSON.parse(progress) as Unversioned
  // `assign` and no spreads, because this runs once a tick and spreads take five times as long.
  const definition: ScheduleDefinition = Object.assign({}, USUAL, JSON.parse(unusual), {
    overlap: overlap as Overlap,
    payload: fromText(payload),
  })
  const { createdAt } = moved
  return Object.assign({ id, version: Number(version), definition, anchor: createdAt, updatedAt: createdAt }, moved)
}

/** Since when a schedule is finished that goes with its history. */
export function goesAt({ finishedAt, definition }: Pick<Schedule, 'finishedAt' | 'definition'>): number | undefined {
  return definition.onFinish === 'remove' && definition.app === undefined ? finishedAt : undefined
}
