/** A route's answer as data. `toResponse` makes the Response, and adds the headers that every answer carries. */
import { SECURITY_HEADERS, SECURITY_HEADERS_OVER_TLS } from '../security/headers.js'

export type ReplyHeaders = Readonly<Record<string, string>>

export interface Reply {
  readonly status: number
  readonly headers: ReplyHeaders
  readonly body: string | ReadableStream<Uint8Array> | null
}

export function json(value: unknown, status = 200, headers: ReplyHeaders = {}): Reply {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(value) }
}

/** A reply whose body is already text or a stream. */
export function content(body: string | ReadableStream<Uint8Array>, type: string): Reply {
  return { status: 200, headers: { 'content-type': type }, body }
}

export function noContent(headers: ReplyHeaders = {}): Reply {
  return { status: 204, headers, body: null }
}

export function toResponse({ status, headers, body }: Reply, secure = false): Response {
  const security = secure ? SECURITY_HEADERS_OVER_TLS : SECURITY_HEADERS
  return new Response(body, { status, headers: { ...security, ...headers } })
}
