/** Files of YAML or JSON, `-` being standard input. */
import { readFileSync } from 'node:fs'
import { failure, quote } from '../../core/errors.js'

export async function readData(path: string): Promise<unknown> {
  const text = readText(path)
  const name = path === '-' ? 'standard input' : quote(path)
  const { parseDocument } = await import('yaml')
  // JSON is YAML too. Instants stay texts, and a key that is there twice is an error.
  const document = parseDocument(text, { prettyErrors: true })
  const [error] = document.errors
  if (error !== undefined) throw failure('OPTION_INVALID', `${name} cannot be read: ${error.message.trim()}`)
  return document.toJS({ maxAliasCount: 100 }) as unknown
}

export function readText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw failure('OPTION_INVALID', `the file ${quote(path)} cannot be read: ${why}`)
  }
}

/** What stands on the command line as JSON. */
export function jsonOf(text: string, option: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw failure('OPTION_INVALID', `${option}: ${quote(text)} is no JSON (${why}); quote it, as in '{"a": 1}'`)
  }
}
