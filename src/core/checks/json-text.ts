/** Reads what `JSON.parse` does not tell about a text: how deep and how large it is, and numbers that parsing would change. */
import { isExactNumber } from './exact-number.js'

export interface JsonMeasure {
  /** How deep brackets are nested outside of strings. */
  readonly depth: number
  /** How many values there are at most. */
  readonly values: number
  /** Where the first number begins that a double cannot hold. */
  readonly inexactAt?: number
}

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const [DIGIT_0, DIGIT_9] = [0x30, 0x39]
const [OPEN_LIST, CLOSE_LIST] = [0x5b, 0x5d]
const [OPEN_OBJECT, CLOSE_OBJECT] = [0x7b, 0x7d]
const BACKSLASH = 0x5c

/** A shorter number without an exponent is exact. */
const LONG_NUMBER = 16
const NUMBER_END = /[^0-9.eE+-]/g

export function measureJson(text: string): JsonMeasure {
  let depth = 0
  let deepest = 0
  let values = 1
  let inexactAt: number | undefined
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === COMMA) values += 1
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      values += 1
      depth += 1
      if (depth > deepest) deepest = depth
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1
    else if (code === MINUS || (code >= DIGIT_0 && code <= DIGIT_9)) {
      const end = endOfNumber(text, at)
      if (inexactAt === undefined && isInexact(text.slice(at, end))) inexactAt = at
      at = end - 1
    }
  }
  return { depth: deepest, values, ...(inexactAt === undefined ? {} : { inexactAt }) }
}

function isInexact(number: string): boolean {
  return (number.length >= LONG_NUMBER || /e/i.test(number)) && !isExactNumber(number)
}

function endOfNumber(text: string, start: number): number {
  NUMBER_END.lastIndex = start
  return NUMBER_END.exec(text)?.index ?? text.length
}

function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let back = at - 1
    while (text.charCodeAt(back) === BACKSLASH) back -= 1
    if ((at - back) % 2 === 1) return at
  }
  return text.length
}

/** The number that begins at a position of valid JSON, and its path from the outermost value inwards. */
export function numberAt(text: string, position: number): { readonly number: string; readonly path: string[] } {
  const path: (string | number)[] = []
  for (let at = 0; at < position; at += 1) {
    const code = text.charCodeAt(at)
    const last = path.at(-1)
    if (code === QUOTE) {
      const end = endOfString(text, at)
      if (/^\s*:/.test(text.slice(end + 1, end + 100))) path[path.length - 1] = JSON.parse(text.slice(at, end + 1))
      at = end
    } else if (code === OPEN_OBJECT) path.push('')
    else if (code === OPEN_LIST) path.push(0)
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) path.pop()
    else if (code === COMMA && typeof last === 'number') path[path.length - 1] = last + 1
  }
  return { number: text.slice(position, endOfNumber(text, position)), path: path.map(String) }
}
