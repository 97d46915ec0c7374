/** Runs as table columns and text. */
import type { RunResource, RunSummary } from '../../client/index.js'
import { cleanLine } from './clean-text.js'
import { briefly, took, wallClock } from './human-time.js'
import { fieldLines } from './output.js'
import type { Style } from './style.js'
import type { Column } from './table.js'

type Paint = ((text: string) => string) | undefined

export function paintState(style: Style, state: string | undefined): Paint {
  if (state === 'succeeded') return style.green
  if (state === 'failed') return style.red
  if (state === 'running') return style.cyan
  return state === 'skipped' || state === 'cancelled' ? style.yellow : undefined
}

export function runColumns(now: number): readonly Column<RunSummary>[] {
  return [
    { title: 'id', cell: ({ id }) => id },
    { title: 'of', cell: ownerOf, least: 12 },
    { title: 'state', cell: stateOf, paint: (style, { state }) => paintState(style, state) },
    { title: 'since', cell: (run) => briefly(Date.parse(sinceOf(run)), now) },
    { title: 'took', cell: tookText, right: true },
    { title: 'try', cell: ({ attempt }) => String(attempt), right: true },
    { title: 'what', cell: aboutOf, least: 8 },
  ]
}

export function ownerOf({ schedule, job, to }: RunSummary): string {
  return schedule ?? job ?? to ?? ''
}

function stateOf({ state, reason, waitsFor }: RunSummary): string {
  if (reason !== undefined) return `${state} (${reason})`
  return waitsFor === undefined ? state : `${state} for ${WAITS_FOR[waitsFor]}`
}

const WAITS_FOR: Readonly<Record<NonNullable<RunSummary['waitsFor']>, string>> = {
  worker: 'a worker that knows the job',
  overlap: 'an earlier run of the schedule',
  key: 'its exclusive key',
}

function sinceOf({ finishedAt, startedAt, state, readyAt }: RunSummary): string {
  return finishedAt ?? (state === 'running' ? (startedAt ?? readyAt) : readyAt)
}

function tookText({ startedAt, finishedAt }: RunSummary): string {
  return startedAt === undefined || finishedAt === undefined ? '' : took(Date.parse(finishedAt) - Date.parse(startedAt))
}

function aboutOf({ error, origin }: RunSummary): string {
  return error === undefined ? (origin === 'tick' ? '' : origin) : error.message
}

/** A line for a run that has just changed. */
export function changeLine(run: RunSummary, style: Style): string {
  const paint = paintState(style, run.state) ?? ((text: string) => text)
  const clock = new Date(sinceOf(run)).toISOString().slice(11, 19)
  const about = [tookText(run), aboutOf(run)].filter((text) => text !== '').join(', ')
  const [who, what] = [cleanLine(`${run.id}  ${ownerOf(run)}`), cleanLine(about)]
  return `${style.dim(clock)}  ${who}  ${paint(stateOf(run))}${what === '' ? '' : `  ${what}`}`
}

export function runLines(run: RunResource, style: Style): string[] {
  const at = (instant: string | undefined) =>
    instant === undefined ? undefined : wallClock(Date.parse(instant), 'UTC')
  const paint = paintState(style, run.state) ?? ((text: string) => text)
  return [
    `${style.bold(cleanLine(`run ${run.id}`))}  ${paint(stateOf(run))}`,
    ...fieldLines(
      {
        schedule: run.schedule,
        tick: at(run.tick),
        job: run.job,
        to: run.to,
        origin: run.backfill === undefined ? run.origin : `${run.origin} "${run.backfill}"`,
        key: run.key?.name,
        'may start': at(run.readyAt),
        'start by': at(run.startBy),
        started: at(run.startedAt),
        ended: at(run.finishedAt),
        took: tookText(run) || undefined,
        attempt: run.takeovers === 0 ? String(run.attempt) : `${run.attempt}, ${run.takeovers} of them taken over`,
        instance: run.instance,
        token: run.token === undefined ? undefined : String(run.token),
        payload: run.payload === null ? undefined : JSON.stringify(run.payload),
        result: run.result === undefined || run.result === null ? undefined : JSON.stringify(run.result),
        error: run.error?.message,
        answer: run.error?.excerpt,
      },
      style,
    ),
  ]
}
