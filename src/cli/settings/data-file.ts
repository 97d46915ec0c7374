/** YAML and JSON files; `-` is standard input. */
import { readFileSync } from 'node:fs'
import { isExactNumber } from '../../core/checks/exact-number.js'
import { measureJson, numberAt } from '../../core/checks/json-text.js'
import { failure, quote } from '../../core/errors.js'
import { quotePath } from '../terminal/quote-path.js'

export async function readData(path: string): Promise<unknown> {
  const text = readText(path)
  const { parseDocument, visit } = await import('yaml')
  // Parses JSON too, as YAML includes it. Timestamps stay text, and a duplicate key is an error.
  const document = parseDocument(text, { prettyErrors: true, merge: true })
  const [error] = document.errors
  if (error?.code === 'MULTIPLE_DOCS') throw unreadable(path, 'it holds several documents: keep one per file')
  if (error !== undefined) throw unreadable(path, error.message.trim())
  visit(document, {
    Scalar(_, { value, source }) {
      if (typeof value !== 'number' || source === undefined || isExactNumber(source)) return
      throw unreadable(path, inexact(source))
    },
  })
  try {
    return checkNumbers(document.toJS({ maxAliasCount: 100 }))
  } catch (cause) {
    throw unreadable(path, messageOf(cause).split('\n', 1)[0] ?? '')
  }
}

/** Refuses numbers that exist in YAML but not in JSON, such as `.inf`, which JSON.stringify would turn into null. */
function checkNumbers(data: unknown): unknown {
  JSON.stringify(data, (key, value: unknown) => {
    const isRefused = typeof value === 'number' ? !Number.isFinite(value) : typeof value === 'bigint'
    if (isRefused) throw new Error(`${quote(key)} is ${String(value)}, which is not a JSON number`)
    return value
  })
  return data
}

export function readText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (error) {
    throw unreadable(path, messageOf(error))
  }
}

/** The JSON value of an option. */
export function jsonOf(text: string, option: string): unknown {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    throw failure(
      'OPTION_INVALID',
      `${option}: ${quote(text)} is not JSON (${messageOf(error)}); quote it, as in '{"a": 1}'`,
    )
  }
  const { inexactAt } = measureJson(text)
  if (inexactAt === undefined) return parsed
  throw failure('OPTION_INVALID', `${option}: ${inexact(numberAt(text, inexactAt).number)}`)
}

function inexact(number: string): string {
  return `the number ${number.slice(0, 40)} cannot be held exactly: write it as text, in quotes`
}

function unreadable(path: string, why: string) {
  return failure('OPTION_INVALID', `${path === '-' ? '' : 'the file '}${quotePath(path)} cannot be read: ${why}`)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
