/**
 * Cross-origin requests of pages that `origins` names (the Fetch standard's CORS protocol, with credentials). Before a request
 * with JSON, a browser asks whether the page may send it (a preflight), and it shows the page only answers that name its
 * origin:
 *
 *     OPTIONS /v1/schedules    Origin: https://dashboard.example.com   →   204, Access-Control-Allow-Origin: https://dash…
 */
import type { Reply, ReplyHeaders } from '../http/reply.js'

const EXPOSED = 'Belfry-API, ETag, Location, Retry-After, Idempotency-Replayed, X-Request-Id'
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const HEADERS = 'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id'
/** How long a browser may remember the answer to a preflight. */
const MAX_AGE_S = 600

/** Headers for the answer; none without `origins`. */
export function corsHeaders(request: Request, origins: readonly string[]): ReplyHeaders {
  if (origins.length === 0) return {}
  const origin = request.headers.get('origin')
  if (origin === null || !origins.includes(origin)) return { vary: 'Origin' }
  return {
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': EXPOSED,
  }
}

/** The answer to a preflight of an allowed origin; undefined for any other request. */
export function preflightReply(request: Request, origins: readonly string[]): Reply | undefined {
  if (request.method !== 'OPTIONS' || !request.headers.has('access-control-request-method')) return undefined
  if (!origins.includes(request.headers.get('origin') ?? '')) return undefined
  const headers = {
    'access-control-allow-methods': METHODS,
    'access-control-allow-headers': HEADERS,
    'access-control-max-age': String(MAX_AGE_S),
  }
  return { status: 204, headers, body: null }
}
