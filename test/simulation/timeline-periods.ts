import { scheduleTimeline } from '../../src/core/schedules/schedule-timeline.js'
import type { Chronicle, EntryOf } from './chronicle.js'
import type { FinalState } from './final-state.js'
import { ALL } from './pruned-history.js'

/** A period in which one timeline of a schedule was in force. */
export interface TimelinePeriod {
  readonly schedule: string
  readonly putAt: number
  /** Every tick that must be accounted for. */
  readonly ticks: readonly number[]
  /** Every value of `times` during the period; infinite where there was none. */
  readonly limits: readonly number[]
  readonly text: string
}

type Turn = EntryOf<'put' | 'removed' | 'pruned'>

/** The successive timelines of a schedule, from the puts and removals that the store executed. */
export function timelinePeriods(chronicle: Chronicle, schedule: string, finalState: FinalState): TimelinePeriod[] {
  const found: TimelinePeriod[] = []
  let put: EntryOf<'put'> | undefined
  let limits: number[] = []
  const end = (through: number) => {
    if (put !== undefined) found.push(period(put, through, limits))
    put = undefined
    limits = []
  }
  for (const turn of chronicle.of('put', 'removed', 'pruned').filter((turn: Turn) => turn.schedule === schedule)) {
    if (turn.kind === 'removed') end(turn.at)
    else if (turn.kind === 'pruned') end(turn.cursor)
    else {
      if (put !== undefined && turn.outcome === 'created') {
        chronicle.violated('no tick is lost', `${schedule} was created again, without a removal`, schedule)
      }
      if (put !== undefined && !isSame(put, turn)) end(turn.at)
      put ??= turn
      limits.push(turn.definition.times ?? Number.POSITIVE_INFINITY)
    }
  }
  const left = finalState.schedules.get(schedule)
  if (put !== undefined && left === undefined) {
    chronicle.violated('no tick is lost', `${schedule} disappeared without a removal`, schedule)
  }
  end(finalState.now)
  return found.map((one, at) => withoutTicksOf(one, found[at + 1]))
}

/** Removes the ticks that the next timeline contains too: they count as ticks of that one. */
function withoutTicksOf(one: TimelinePeriod, next: TimelinePeriod | undefined): TimelinePeriod {
  const taken = new Set(next?.ticks.filter((tick) => tick <= next.putAt))
  return { ...one, ticks: one.ticks.filter((tick) => !taken.has(tick)) }
}

function period(
  { schedule, definition, at, cursor }: EntryOf<'put'>,
  through: number,
  limits: number[],
): TimelinePeriod {
  const { timeline, startsAt, endsAt } = definition
  const anchor = 'every' in timeline && startsAt !== undefined ? startsAt - timeline.every : at
  const fields = {
    ...{ timeline, anchor },
    ...(startsAt === undefined ? {} : { startsAt }),
    ...(endsAt === undefined ? {} : { endsAt }),
  }
  // Ticks come after the put, or earlier when the definition names an instant that has just passed.
  const after = 'at' in timeline || startsAt !== undefined ? Math.min(cursor, at) : at
  const text = `${JSON.stringify(definition)} from ${new Date(at).toISOString()} to ${new Date(through).toISOString()}`
  return { schedule, putAt: at, ticks: scheduleTimeline(fields).between(after, through, ALL), limits, text }
}

function isSame(one: EntryOf<'put'>, other: EntryOf<'put'>): boolean {
  return line(one) === line(other)
}

function line({ definition: { timeline, startsAt, endsAt } }: EntryOf<'put'>): string {
  return JSON.stringify([timeline, startsAt ?? null, endsAt ?? null])
}
