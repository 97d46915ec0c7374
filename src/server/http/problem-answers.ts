/** The refusals of routes in the OpenAPI document: one answer for each status, with the codes that it may have. */
import { problemShape } from '../shapes/problem.js'
import { type Schema, type Schemas, schemaOf } from './json-schema.js'
import type { Route } from './route.js'
import { STATUS_OF } from './service-codes.js'

/** The names of the answers. */
export const PROBLEM: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthenticated',
  403: 'Forbidden',
  404: 'NotFound',
  408: 'TooSlow',
  409: 'Conflict',
  412: 'PreconditionFailed',
  413: 'TooLarge',
  415: 'UnsupportedMediaType',
  421: 'MisdirectedRequest',
  422: 'Invalid',
  429: 'TooManyRequests',
  503: 'Unavailable',
}

const RETRY_AFTER = { description: 'Seconds until the request may be sent again.', schema: { type: 'string' } }
const ALLOW = { description: 'The methods of the path, after a request with another one.', schema: { type: 'string' } }

/** The statuses with which a route refuses requests. */
export function refusalsOf({ path, role, body, stream, idempotent, headers = {}, refuses = [] }: Route): number[] {
  return [
    400,
    ...(role === undefined ? [] : [401, 403, 421]),
    ...(path.includes('{') ? [404] : []),
    ...(body === undefined && stream === undefined ? [] : [408, 413, 415, 422]),
    ...(idempotent ? [409] : []),
    ...('If-Match' in headers ? [412] : []),
    ...refuses,
    429,
    503,
  ].filter((status, at, all) => all.indexOf(status) === at)
}

export function problemAnswers(routes: readonly Route[], schemas: Schemas): Schema {
  const schema = schemaOf(problemShape, 'output', schemas)
  const content = { 'application/problem+json': { schema } }
  const used = new Set(routes.flatMap(refusalsOf))
  const answers = [...used].sort().map((status) => {
    const codes = Object.entries(STATUS_OF).flatMap(([code, its]) => (its === status ? [code] : []))
    const headers =
      status === 429 || status === 503 || status === 409 ? { headers: { 'Retry-After': RETRY_AFTER } } : {}
    return [
      PROBLEM[status] ?? `Problem${status}`,
      { description: `${codes.join(', ')}.`, ...headers, content },
    ] as const
  })
  const any = { description: 'Any other problem.', headers: { 'Retry-After': RETRY_AFTER, Allow: ALLOW }, content }
  return Object.fromEntries([...answers, ['Problem', any]])
}
