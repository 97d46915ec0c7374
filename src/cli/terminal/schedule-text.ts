/** Schedules as table columns and text. */
import type { ScheduleResource } from '../../client/index.js'
import { cleanLine } from './clean-text.js'
import { briefly, relative, took, wallClock } from './human-time.js'
import { fieldLines } from './output.js'
import { paintState } from './run-text.js'
import type { Style } from './style.js'
import type { Column } from './table.js'

export function scheduleColumns(now: number): readonly Column<ScheduleResource>[] {
  return [
    { title: 'id', cell: ({ id }) => id, least: 14 },
    { title: 'when', cell: ({ description }) => description, least: 14 },
    { title: 'next', cell: ({ next }) => (next === null ? '–' : briefly(Date.parse(next), now)) },
    {
      title: 'last',
      cell: ({ recent }) => outcome(recent?.last?.state),
      paint: (style, { recent }) => paintState(style, recent?.last?.state),
    },
    { title: 'p95', cell: ({ recent }) => (recent?.p95Ms === undefined ? '–' : took(recent.p95Ms)), right: true },
    {
      title: 'state',
      cell: ({ state }) => state,
      paint: (style, { state }) => (state === 'active' ? style.green : style.yellow),
    },
  ]
}

function outcome(state: string | undefined): string {
  return state === undefined ? '–' : state === 'succeeded' ? 'ok' : state
}

export function scheduleLines(schedule: ScheduleResource, now: number, style: Style): string[] {
  const { id, description, next, timezone = 'UTC', state, pausedAt, pauseNote, remaining, recent } = schedule
  const at = (instant: string) => {
    const ms = Date.parse(instant)
    return `${wallClock(ms, timezone)}  (${relative(ms, now, timezone)})`
  }
  const note = pauseNote === undefined ? '' : `: ${pauseNote}`
  return [
    style.bold(cleanLine(id)),
    ...fieldLines(
      {
        when: description,
        next: next === null ? 'none' : at(next),
        state: pausedAt === undefined ? state : `${state} since ${at(pausedAt)}${note}`,
        ...timelineFields(schedule),
        target: schedule.job === undefined ? `to ${schedule.to}` : `job ${schedule.job}`,
        payload: schedule.payload === null ? undefined : JSON.stringify(schedule.payload),
        ...policyFields(schedule),
        left: remaining === undefined ? undefined : `${remaining} ${remaining === 1 ? 'tick' : 'ticks'}`,
        last: recent?.last === undefined ? undefined : `${outcome(recent.last.state)}, ${at(recent.last.at)}`,
        p95: recent?.p95Ms === undefined ? undefined : took(recent.p95Ms),
        app: schedule.app,
        key: schedule.keyPending ? 'an instance with the job’s code has yet to compute it' : schedule.key,
        version: String(schedule.version),
        changed: at(schedule.updatedAt),
      },
      style,
    ),
  ]
}

function timelineFields({ cron, every, at, timezone, startsAt, endsAt }: ScheduleResource) {
  const instants = at === undefined ? undefined : [at].flat().join(', ')
  return { cron, every, at: instants, timezone, starts: startsAt, ends: endsAt }
}

function policyFields({ overlap, missed, deadline, jitter, priority, keep }: ScheduleResource) {
  const text = (value: unknown) => (value === undefined ? undefined : String(value))
  return {
    overlap: overlap === 'allow' ? undefined : overlap,
    missed: typeof missed === 'string' ? (missed === 'latest' ? undefined : missed) : JSON.stringify(missed),
    deadline: text(deadline),
    jitter: text(jitter),
    priority: priority === 0 ? undefined : String(priority),
    keep: keep === 'all' ? undefined : keep,
  }
}
