/**
 * Parses a crontab as crontab(5) describes it: comments, NAME=value lines that apply to the lines after them, five fields or a
 * nickname, a user in the system format, and a command in which % starts its standard input.
 */
import { createHash } from 'node:crypto'
import { BelfryError, failure } from '../../core/errors.js'
import { isEvery } from '../../time/cron/nicknames.js'
import { parseTimeline } from '../../time/timeline.js'

export interface CrontabLine {
  /** Line number in the file. */
  readonly number: number
  /** Identifies the line by its content, so that it stays the same when the line moves. */
  readonly hash: string
  readonly cron: string
  readonly timezone: string
  readonly user?: string
  readonly command: string
  readonly stdin?: string
  readonly env: Readonly<Record<string, string>>
}

export interface Crontab {
  readonly lines: readonly CrontabLine[]
  /** Messages about lines that were left out. */
  readonly notes: readonly string[]
}

export interface CrontabOptions {
  /** Whether lines name a user before their command. */
  readonly system: boolean
  /** Time zone of lines without CRON_TZ. */
  readonly timezone: string
}

const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*|"[^"]+"|'[^']+')\s*=\s*(.*)$/
const EVERY = /^(@every\s+\S+)\s+(.*)$/
const NICKNAME = /^(@[A-Za-z]+)\s+(.*)$/
const FIELDS = /^((?:\S+\s+){4}\S+)\s+(.*)$/
const USER = /^([A-Za-z_][A-Za-z0-9_.-]*\$?)\s+(.*)$/

export function parseCrontab(text: string, options: CrontabOptions): Crontab {
  const lines: CrontabLine[] = []
  const notes: string[] = []
  const env: Record<string, string> = {}
  const seen = new Map<string, number>()
  for (const [at, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim()
    const number = at + 1
    if (line === '' || line.startsWith('#')) continue
    const assignment = ASSIGNMENT.exec(line)
    if (assignment !== null) env[unquoted(assignment[1] ?? '')] = unquoted(assignment[2] ?? '')
    else if (/^@reboot\s/.test(line)) notes.push(`line ${number}: @reboot has no time, so it is left out`)
    else {
      const parsed = parseLine(line, number, env, options, seen)
      if (parsed === undefined) notes.push(`line ${number}: there is no such day, so it is left out`)
      else lines.push(parsed)
    }
  }
  if (env.MAILTO) notes.push('MAILTO: nothing is mailed; belfry run ID shows the output of a command')
  return { lines, notes }
}

/** Returns undefined for a line that never fires, such as on February 31: some people disable lines that way. */
function parseLine(
  text: string,
  number: number,
  env: Readonly<Record<string, string>>,
  { system, timezone: local }: CrontabOptions,
  seen: Map<string, number>,
): CrontabLine | undefined {
  // A leading dash tells cron not to log the line; here it has no effect.
  const line = text.replace(/^-(?=[\d*@])/, '')
  const [, when, rest] = EVERY.exec(line) ?? NICKNAME.exec(line) ?? FIELDS.exec(line) ?? []
  if (when === undefined || rest === undefined) {
    throw wrong(number, 'it has no time and command: write "0 9 * * 1-5 /path/to/command"')
  }
  const timezone = env.CRON_TZ ?? local
  const cron = withVixieDays(when.replaceAll(/\s+/g, ' '))
  if (!canFire(cron, timezone, number)) return undefined
  const [, user, after] = system ? (USER.exec(rest) ?? []) : [undefined, undefined, rest]
  if (after === undefined)
    throw wrong(
      number,
      'in a system crontab a user stands before the command; use --user-format for a crontab without users',
    )
  const { command, stdin } = splitCommand(after)
  const { CRON_TZ: _, MAILTO: __, ...given } = env
  const identity = JSON.stringify([cron, timezone, user ?? null, command, stdin ?? null, Object.entries(given).sort()])
  const count = (seen.get(identity) ?? 0) + 1
  seen.set(identity, count)
  const hash = createHash('sha256')
    .update(`${identity}${count === 1 ? '' : ` ${count}`}`)
    .digest('hex')
    .slice(0, 16)
  return {
    ...{ number, hash, cron, timezone, command, env: given },
    ...(user === undefined ? {} : { user }),
    ...(stdin === undefined ? {} : { stdin }),
  }
}

/**
 * In cron a day field that begins with `*` is joined to the other one with AND. A schedule writes that with `+`:
 *
 *     0 4 *\/2 * MON   →   0 4 *\/2 * +MON
 */
function withVixieDays(cron: string): string {
  const [minute, hour, monthDay, month, weekday] = cron.split(' ')
  if (weekday === undefined || monthDay === undefined) return cron
  const days = [monthDay, weekday]
  const isJoined = days.some((field) => field.startsWith('*/')) && days.every((field) => field !== '*')
  return isJoined ? `${minute} ${hour} ${monthDay} ${month} +${weekday}` : cron
}

function canFire(cron: string, timezone: string, number: number): boolean {
  try {
    parseTimeline(isEvery(cron) ? { cron } : { cron, timezone })
    return true
  } catch (error) {
    if (error instanceof BelfryError && error.code === 'EXPRESSION_NEVER_FIRES') return false
    throw wrong(number, error instanceof Error ? error.message : String(error))
  }
}

/** The first % ends the command; the rest is its standard input, with a line break for each further %. */
function splitCommand(text: string): { readonly command: string; readonly stdin?: string } {
  const parts = text.split(/(?<!\\)%/).map((part) => part.replaceAll('\\%', '%'))
  const [command = '', ...input] = parts
  return input.length === 0 ? { command } : { command, stdin: `${input.join('\n')}\n` }
}

function unquoted(text: string): string {
  const trimmed = text.trim()
  return /^(["']).*\1$/s.test(trimmed) && trimmed.length > 1 ? trimmed.slice(1, -1) : trimmed
}

function wrong(number: number, what: string) {
  return failure('OPTION_INVALID', `line ${number} of the crontab: ${what}`)
}
