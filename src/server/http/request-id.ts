import { randomUUID } from 'node:crypto'
import type { ServerContext } from './route.js'

const HEADER = 'x-request-id'
const VALID = /^[\x21-\x7e]{1,128}$/

/** The id under which the answer, its problem and the log name a request: that of its X-Request-Id, or a new one. */
export function requestIdOf(c: ServerContext): string {
  const given = c.req.header(HEADER)
  return given !== undefined && VALID.test(given) ? given : randomUUID()
}

export function requestIdHeader(id: string): Readonly<Record<string, string>> {
  return { [HEADER]: id }
}
