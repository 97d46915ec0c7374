/**
 * The stored layout of a schedule, as the hash `schedules` has it: three lines, made small because there are millions of
 * schedules:
 *
 * 1. its overlap policy as a letter, its version, and where its timeline has got to, in base 36; `=` stands for what
 *    another instant says already, and what is absent at the end is left out
 * 2. its definition as JSON, without the payload, in short names and without what is usual
 * 3. its payload as JSON
 *
 * The first two lines are what the planner needs; together they tell whether anything has changed. Scripts put
 * the first line together (`write.lua`, `record-ticks.lua`); of its fields they read the letter alone.
 */
import type { Mutable } from '../../../core/mutable.js'
import type { Missed, Overlap } from '../../../core/policies.js'
import { DEFAULT_MISSED } from '../../../core/policies.js'
import { fromText, targetName, targetOf, targetOptions, toText } from '../../../core/runs/stored-text.js'
import type { Schedule, ScheduleDefinition } from '../../../core/schedules/schedule.js'

const LETTERS: Readonly<Record<Overlap, string>> = {
  allow: 'a',
  skip: 's',
  'queue-one': 'o',
  'queue-all': 'q',
  'cancel-running': 'c',
}
const OVERLAPS: Readonly<Record<string, Overlap>> = Object.fromEntries(
  Object.entries(LETTERS).map(([overlap, letter]) => [letter, overlap as Overlap]),
)

/** Where a schedule's timeline has got to: all of it but its definition. */
export type Progress = Omit<Schedule, 'id' | 'definition' | 'version' | 'pauseNote'>

/** The first line but for letter and version. Scripts put the version in, because it is theirs to give. */
export function progressText(progress: Progress): string {
  const { anchor, createdAt, updatedAt } = progress
  const [since, changed] = [anchor, updatedAt].map((at) => (at === createdAt ? '=' : instant(at)))
  return `${instant(createdAt)} ${since} ${changed} ${movingText(progress)}`
}

export function overlapLetter({ overlap }: ScheduleDefinition): string {
  return LETTERS[overlap]
}

/** Since when a schedule is finished that goes with its history. */
export function goesAt({
  finishedAt,
  definition,
}: {
  readonly finishedAt?: number
  readonly definition: Pick<ScheduleDefinition, 'onFinish' | 'app'>
}): number | undefined {
  return definition.onFinish === 'remove' && definition.app === undefined ? finishedAt : undefined
}

/** The second and third line. */
export function definitionText(schedule: Pick<Schedule, 'definition' | 'pauseNote'>): string {
  return `${JSON.stringify(short(schedule))}\n${toText(schedule.definition.payload)}`
}

/** Where the part of a first line begins that planning changes, behind version, creation, anchor and change. */
export function movingFrom(line: string): number {
  let at = 0
  for (let space = 0; space < 4; space += 1) at = line.indexOf(' ', at) + 1
  return at
}

type Moving = Pick<Progress, 'cursor' | 'nextAt' | 'dueAt' | 'remaining' | 'pausedAt' | 'finishedAt'>

/** The part of a first line that planning changes. */
export function movingText({ cursor, nextAt, dueAt, remaining, pausedAt, finishedAt }: Moving): string {
  const due = dueAt !== undefined && dueAt === nextAt ? '=' : instant(dueAt)
  const start = `${instant(cursor)} ${instant(nextAt)} ${due}`
  if (remaining === undefined && pausedAt === undefined && finishedAt === undefined) {
    return due === '-' ? start.replace(ABSENT, '') : start
  }
  return `${start} ${instant(remaining)} ${instant(pausedAt)} ${instant(finishedAt)}`.replace(ABSENT, '')
}

const ABSENT = /( -)+$/

function instant(value: number | undefined): string {
  return value === undefined ? '-' : value.toString(36)
}

function read(text: string | undefined): number | undefined {
  return text === undefined || text === '-' ? undefined : Number.parseInt(text, 36)
}

interface Short {
  readonly t: ScheduleDefinition['timeline']
  readonly to: string
  readonly x?: string
  readonly s?: number
  readonly e?: number
  readonly k?: ScheduleDefinition['key']
  readonly m?: Missed
  readonly d?: number
  readonly j?: number
  readonly n?: number
  readonly p?: number
  readonly h?: ScheduleDefinition['keep']
  readonly f?: 1
  readonly a?: string
  readonly note?: string
}

function short({ definition, pauseNote }: Pick<Schedule, 'definition' | 'pauseNote'>): Short {
  const { timeline, target, startsAt, endsAt, key, missed, deadlineMs, jitterMs, times, priority, keep } = definition
  const { onFinish, app } = definition
  const options = targetOptions(target)
  return {
    t: timeline,
    to: targetName(target),
    ...(options === null ? {} : { x: options }),
    ...(startsAt === undefined ? {} : { s: startsAt }),
    ...(endsAt === undefined ? {} : { e: endsAt }),
    ...(key === undefined ? {} : { k: key }),
    ...(isUsual(missed) ? {} : { m: missed }),
    ...(deadlineMs === undefined ? {} : { d: deadlineMs }),
    ...(jitterMs === 0 ? {} : { j: jitterMs }),
    ...(times === undefined ? {} : { n: times }),
    ...(priority === 0 ? {} : { p: priority }),
    ...(keep === 'all' ? {} : { h: keep }),
    ...(onFinish === 'remove' ? {} : { f: 1 }),
    ...(app === undefined ? {} : { a: app }),
    ...(pauseNote === undefined ? {} : { note: pauseNote }),
  }
}

function isUsual({ policy, withinMs, max, graceMs }: Missed): boolean {
  return (
    policy === DEFAULT_MISSED.policy &&
    withinMs === undefined &&
    max === DEFAULT_MISSED.max &&
    graceMs === DEFAULT_MISSED.graceMs
  )
}

/** A definition without its payload, which the planner does not look at. */
export type Body = Omit<ScheduleDefinition, 'payload' | 'overlap'> & { readonly pauseNote?: string }

export function toBody(text: string): Body {
  const { t, to, x, s, e, k, m, d, j, n, p, h, f, a, note } = JSON.parse(text) as Short
  return {
    timeline: t,
    target: targetOf(to, x ?? null),
    ...(s === undefined ? {} : { startsAt: s }),
    ...(e === undefined ? {} : { endsAt: e }),
    ...(k === undefined ? {} : { key: k }),
    missed: m ?? DEFAULT_MISSED,
    ...(d === undefined ? {} : { deadlineMs: d }),
    jitterMs: j ?? 0,
    ...(n === undefined ? {} : { times: n }),
    priority: p ?? 0,
    keep: h ?? 'all',
    onFinish: f === undefined ? 'remove' : 'keep',
    ...(a === undefined ? {} : { app: a }),
    ...(note === undefined ? {} : { pauseNote: note }),
  }
}

export interface Head extends Progress {
  readonly overlap: Overlap
  readonly version: number
}

export function toHead(line: string): Head {
  const start = movingFrom(line)
  const [version = '', created, anchor, updated] = line.slice(0, start).split(' ')
  const createdAt = read(created) ?? 0
  const { cursor, nextAt, dueAt, remaining, pausedAt, finishedAt } = toMoving(line.slice(start))
  const head: Mutable<Head> = {
    overlap: OVERLAPS[version.charAt(0)] ?? 'allow',
    version: Number(version.slice(1)),
    createdAt,
    anchor: anchor === '=' ? createdAt : (read(anchor) ?? 0),
    updatedAt: updated === '=' ? createdAt : (read(updated) ?? 0),
    cursor,
  }
  if (nextAt !== undefined) head.nextAt = nextAt
  if (dueAt !== undefined) head.dueAt = dueAt
  if (remaining !== undefined) head.remaining = remaining
  if (pausedAt !== undefined) head.pausedAt = pausedAt
  if (finishedAt !== undefined) head.finishedAt = finishedAt
  return head
}

function toMoving(text: string) {
  const [cursor, next, due, remaining, paused, finished] = text.split(' ')
  const nextAt = read(next)
  return {
    cursor: read(cursor) ?? 0,
    nextAt,
    dueAt: due === '=' ? nextAt : read(due),
    remaining: read(remaining),
    pausedAt: read(paused),
    finishedAt: read(finished),
  }
}

export function toSchedule(id: string, text: string): Schedule {
  const [head = '', body = '', payload = 'null'] = text.split('\n')
  const { overlap, version, ...progress } = toHead(head)
  const { pauseNote, ...definition } = toBody(body)
  return {
    id,
    version,
    definition: { ...definition, overlap, payload: fromText(payload) },
    ...progress,
    ...(pauseNote === undefined ? {} : { pauseNote }),
  }
}
