/** The live output of `belfry dev`: a line for each event of a run, and for each API request. */
import type { Style } from '../terminal/style.js'
import type { RequestNote } from './demo-api.js'

/** An event of a run as plain data, so that it can cross a process boundary. */
export interface RunNote {
  readonly kind: 'started' | 'succeeded' | 'failed' | 'retrying' | 'cancelled' | 'released' | 'stale'
  readonly at: number
  /** The schedule; of a run without one, the job or the sink. */
  readonly schedule: string
  /** What a sink delivers, as JSON. */
  readonly event?: string
  readonly tick: number
  readonly attempt: number
  readonly takeovers: number
  /** Whether the run holds a key. Only such a run gets a line at its start, so that the user can kill it while it runs. */
  readonly exclusive: boolean
  readonly lateMs: number
  readonly durationMs?: number
  readonly error?: string
  readonly delayMs?: number
}

const NAME_WIDTH = 10
const MAX_EVENT = 60

/** Returns undefined for an event that gets no line. */
export function runLine(note: RunNote, replica: string | undefined, style: Style): string | undefined {
  const text = eventText(note, style)
  if (text === undefined) return undefined
  const who = replica === undefined ? '' : `${style.cyan(replica)}  `
  const time = style.dim(clockTime(note.at, true))
  return `${time}  ${who}${style.bold(note.schedule.padEnd(NAME_WIDTH))} ${clockTime(note.tick)}  ${text}`
}

export function requestLine({ method, path, status, ms }: RequestNote, style: Style): string {
  const mark = status < 400 ? style.green(String(status)) : style.red(String(status))
  const name = style.cyan('API'.padEnd(NAME_WIDTH))
  return `${style.dim(clockTime(Date.now(), true))}  ${name} ${method} ${path} → ${mark}${style.dim(` in ${duration(ms)}`)}`
}

function eventText(note: RunNote, style: Style): string | undefined {
  const { kind, attempt, takeovers, lateMs, error, delayMs } = note
  const took = note.durationMs === undefined ? '' : ` in ${duration(note.durationMs)}`
  const again = attempt > 1 ? style.dim(`, attempt ${attempt}`) : ''
  switch (kind) {
    case 'started':
      if (takeovers > 0) return `▶ ${style.yellow(`taken over, attempt ${attempt}`)}`
      return note.exclusive ? style.dim('▶ running') : undefined
    case 'succeeded':
      return `${style.green('✔')} ${note.event === undefined ? 'done' : `delivered ${cut(note.event)}`}${took}${style.dim(`, started +${Math.max(lateMs, 0)} ms`)}${again}`
    case 'retrying':
      return `${style.yellow('↻')} failed: ${error}${style.dim(`, retry in ${duration(delayMs ?? 0)}`)}`
    case 'failed':
      return `${style.red('✘')} failed: ${error}${again}`
    case 'released':
      return style.dim('released: the instance is stopping')
    case 'cancelled':
      return style.dim('cancelled')
    case 'stale':
      return style.yellow('stale: its token was refused')
  }
}

function cut(text: string): string {
  return text.length <= MAX_EVENT ? text : `${text.slice(0, MAX_EVENT - 1)}…`
}

export function clockTime(instant: number, fraction = false): string {
  const date = new Date(instant)
  const pad = (value: number, width = 2) => String(value).padStart(width, '0')
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`
  return fraction ? `${time}.${pad(date.getMilliseconds(), 3)}` : time
}

function duration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}
