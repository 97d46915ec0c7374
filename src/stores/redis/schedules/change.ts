/**
 * Changes schedules. One script reads the schedules, this process decides what to change, and another script writes
 * that if everything is still as it was read. Otherwise the script writes nothing, and this process reads and decides
 * again.
 */

import { failure } from '../../../core/errors.js'
import type { TakeBack } from '../../../core/schedules/declare.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import { flag, listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { numberIn, runId } from '../runs/run-codec.js'
import readSource from './read.lua'
import { definitionText, goesAt, progressText, toSchedule } from './schedule-codec.js'
import writeSource from './write.lua'

const readScript = luaScript({
  name: 'schedules/read',
  source: readSource,
  takes: { ids: listOf(text) },
  gives: { now: number, found: listOf(named({ text, unclaimed: text })) },
})

export const skipRange = named({ from: number, to: number, count: number, reason: text })

export const writeSchedulesScript = luaScript({
  name: 'schedules/write',
  source: writeSource,
  writes: true,
  takes: {
    startFrom: number,
    changes: listOf(
      named({
        id: text,
        /** What the decision is based on: the text of the schedule and its unclaimed ticks. */
        text,
        unclaimed: text,
        takeBack: named({ remove: listOf(text), skip: listOf(text), reason: text, unrecorded: listOf(skipRange) }),
        /** The new content of the schedule. Absent to remove it. */
        to: maybe(
          named({
            place: number,
            overlap: text,
            progress: text,
            definition: text,
            dueAt: maybe(number),
            goesAt: maybe(number),
            unstamped: flag,
          }),
        ),
      }),
    ),
  },
  gives: { written: flag, now: number, versionsFrom: number },
})

/** A schedule as it was read, with its unclaimed ticks, which can still be taken back. */
export interface Found {
  readonly id: string
  readonly text: string
  readonly schedule: Schedule | undefined
  readonly unclaimedText: string
  readonly unclaimed: readonly { readonly run: string; readonly tick: number }[]
}

export interface ScheduleChange {
  readonly found: Found
  /** The new content, and its place among the versions that the write issues. Undefined to remove the schedule. */
  readonly schedule: Omit<Schedule, 'version'> | undefined
  readonly place: number
  readonly takeBack: TakeBack
}

export const NO_TICKS: TakeBack = { remove: [], skip: [], reason: 'replaced', unrecorded: [] }

export interface Decision<Result> {
  readonly changes: readonly ScheduleChange[]
  /** The result for the caller after the write, which issues versions from `versionsFrom` on. */
  readonly result: (versionsFrom: number) => Result
}

export type Decide<Result> = (found: readonly Found[], now: number) => Decision<Result>

/**
 * How often a change is decided again after other writers changed the schedules. More often than that is no
 * coincidence.
 */
const MAX_TRIES = 100

export async function decideOn<Result>(
  server: Server,
  shard: number,
  ids: readonly string[],
  decide: Decide<Result>,
): Promise<Decision<Result>> {
  const { now, found } = await server.call(readScript, shard, { ids })
  const schedules = ids.map((id, at) => foundIn(shard, id, found[at]?.text ?? '', found[at]?.unclaimed ?? ''))
  return decide(schedules, now)
}

function foundIn(shard: number, id: string, stored: string, unclaimedText: string): Found {
  const unclaimed = unclaimedText === '' ? [] : unclaimedText.split(' ')
  return {
    ...{ id, text: stored, unclaimedText },
    schedule: stored === '' ? undefined : toSchedule(id, stored),
    unclaimed: unclaimed.map((each) => {
      const [run = '', tick] = each.split(':')
      return { run: runId(shard, run), tick: Number(tick) }
    }),
  }
}

export async function change<Result>(
  server: Server,
  shard: number,
  ids: readonly string[],
  decide: Decide<Result>,
  first?: Decision<Result>,
): Promise<Result> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const known = tries === 0 ? first : undefined
    const { changes, result } = known ?? (await decideOn(server, shard, ids, decide))
    if (changes.length === 0) return result(0)
    const given = { startFrom: server.numbersFrom(), changes: changes.map(toGiven) }
    const { written, versionsFrom } = await server.call(writeSchedulesScript, shard, given)
    if (written) return result(versionsFrom)
  }
  throw failure('STORE_UNREACHABLE', `schedule "${ids[0]}" and others are written by too many at once: try again`)
}

function toGiven({ found, schedule, place, takeBack }: ScheduleChange) {
  const { remove, skip, reason, unrecorded } = takeBack
  const taken = { remove: remove.map(numberIn), skip: skip.map(numberIn), reason, unrecorded }
  return {
    ...{ id: found.id, text: found.text, unclaimed: found.unclaimedText, takeBack: taken },
    to: schedule && {
      ...{ place, overlap: schedule.definition.overlap, progress: progressText(schedule) },
      ...{ definition: definitionText(schedule.definition), unstamped: schedule.definition.key === 'unstamped' },
      ...{ dueAt: schedule.dueAt, goesAt: goesAt(schedule) },
    },
  }
}
