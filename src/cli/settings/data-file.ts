/** Files of YAML or JSON, `-` being standard input. */
import { readFileSync } from 'node:fs'
import { failure, quote } from '../../core/errors.js'
import { quotePath } from '../terminal/quote-path.js'

export async function readData(path: string): Promise<unknown> {
  const text = readText(path)
  const { parseDocument } = await import('yaml')
  // JSON is YAML too. Instants stay texts, and a key that is there twice is an error.
  const document = parseDocument(text, { prettyErrors: true, merge: true })
  const [error] = document.errors
  if (error?.code === 'MULTIPLE_DOCS') throw unreadable(path, 'it holds several documents: keep one in a file')
  if (error !== undefined) throw unreadable(path, error.message.trim())
  try {
    return asJson(document.toJS({ maxAliasCount: 100 }))
  } catch (cause) {
    throw unreadable(path, messageOf(cause).split('\n', 1)[0] ?? '')
  }
}

/** YAML can say what JSON cannot: none of it may turn into something else on its way. */
function asJson(data: unknown): unknown {
  JSON.stringify(data, (key, value: unknown) => {
    const isOdd = typeof value === 'number' ? !Number.isFinite(value) : typeof value === 'bigint'
    if (isOdd) throw new Error(`${quote(key)} is ${String(value)}, which JSON has no number for`)
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

/** What stands on the command line as JSON. */
export function jsonOf(text: string, option: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw failure(
      'OPTION_INVALID',
      `${option}: ${quote(text)} is no JSON (${messageOf(error)}); quote it, as in '{"a": 1}'`,
    )
  }
}

function unreadable(path: string, why: string) {
  return failure('OPTION_INVALID', `${path === '-' ? '' : 'the file '}${quotePath(path)} cannot be read: ${why}`)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
