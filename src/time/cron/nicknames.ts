/**
 * The words that begin with `@`. A nickname stands for a cron expression (`@daily`). `@every 1h` and `@at
 * 2026-03-01T09:00:00Z` are timelines of other kinds, written in the place of a cron expression. `@reboot` is refused.
 */
import { quote, timeError } from '../error.js'

export const NICKNAMES: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
])

export const EVERY = '@every'
export const AT = '@at'

/** Whether the text is an interval, which takes no time zone. */
export function isEvery(text: string): boolean {
  return text.trimStart().startsWith(EVERY)
}

export function isAt(text: string): boolean {
  return text.trimStart().startsWith(AT)
}

/** `@every 1h` as `@every` and `1h`. */
export function splitNickname(cron: string): [head: string, rest: string] {
  const text = cron.trim()
  const blank = text.search(/[ \t]/)
  return blank < 0 ? [text, ''] : [text.slice(0, blank), text.slice(blank).trim()]
}

export function unknownNickname(text: string) {
  if (text === '@reboot') {
    return timeError(
      'EXPRESSION_UNSUPPORTED',
      '"@reboot" names no instant and is not supported: run the work when your app starts, or enqueue it then',
    )
  }
  const lower = text.toLowerCase()
  const hint = !NICKNAMES.has(lower) ? `known are ${[...NICKNAMES.keys()].join(', ')}` : `write "${lower}"`
  return timeError('EXPRESSION_SYNTAX', `nickname ${quote(text)} is unknown: ${hint}, @every or @at`)
}
