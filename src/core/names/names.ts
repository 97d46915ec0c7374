import { LIMITS } from '../defaults.js'
import { failure, quote } from '../errors.js'

// Control characters break logs, keys and terminals. Lone surrogates cannot be written as UTF-8.
const FORBIDDEN = /[\p{Cc}\p{Cs}]/u
/** Most names match this, and it is faster than FORBIDDEN. */
const PLAIN = /^[\w/:-]{1,255}$/

/** Names of schedules, jobs, locks, apps and sinks: 1 to 255 characters of text. */
export function checkName(name: unknown, what: string): string {
  if (typeof name !== 'string') throw invalid(what, name, 'it must be text')
  if (PLAIN.test(name)) return name
  if (name.length < 1 || name.length > LIMITS.nameLength) {
    throw invalid(what, name, `it has ${name.length} characters, and 1 to ${LIMITS.nameLength} are allowed`)
  }
  if (name.trim() !== name) throw invalid(what, name, 'it begins or ends with white space')
  if (FORBIDDEN.test(name)) throw invalid(what, name, 'it holds control characters')
  if (name === '.' || name === '..') throw invalid(what, name, 'no path can name it')
  return name
}

/** An id to look up. Text that is not an allowed name finds nothing; a value that is not text is refused. */
export function checkText(text: unknown, what: string): string {
  if (typeof text === 'string') return text
  throw failure('NAME_INVALID', `${what} must be text, not ${quote(text)}`)
}

function invalid(what: string, name: unknown, problem: string) {
  return failure('NAME_INVALID', `${what} ${quote(name)} is not allowed: ${problem}`)
}
