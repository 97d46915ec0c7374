/**
 * The server as a handler of Node's own requests, for Express, Fastify, Nest, Connect and `node:http`:
 *
 *     app.use('/belfry', toNodeHandler(server))     // Express, Nest, Connect
 *     app.all('/belfry/*', toNodeHandler(server))   // Fastify
 *
 * It finds out by itself where it is mounted, and takes the body from a body parser that ran before it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { problem, problemResponse } from './http/problem.js'
import type { BelfryServer } from './index.js'
import type { RequestInfo } from './security/caller.js'

/** What frameworks and body parsers add to a request. */
export interface RequestExtras {
  readonly url?: string | undefined
  /** Express and Connect: the path before a router has removed its mount path. */
  readonly originalUrl?: string | undefined
  /** Express: the mount path. */
  readonly baseUrl?: string | undefined
  /** Fastify: the route's pattern. */
  readonly routeOptions?: { readonly url?: string | undefined } | undefined
  /** Express and Fastify: the client's address, behind the proxies that the app trusts. */
  readonly ip?: string | undefined
  readonly protocol?: string | undefined
  /** What a body parser has read. */
  readonly body?: unknown
}

/** A request of Node, also as Express and Nest extend it; or Fastify's, which wraps it. */
export type NodeRequest = (IncomingMessage | { readonly raw: IncomingMessage }) & RequestExtras

/** A response of Node, or Fastify's, which wraps it. */
export type NodeResponse = ServerResponse | { readonly raw: ServerResponse; hijack(): unknown }

export type NodeHandler = (request: NodeRequest, response: NodeResponse) => void

export function toNodeHandler(server: Pick<BelfryServer, 'fetch'>): NodeHandler {
  return (request, response) => {
    const incoming = 'raw' in request ? request.raw : request
    const outgoing = 'raw' in response ? response.raw : response
    if ('raw' in response) response.hijack()
    const body = bodyOf(incoming, request)
    const info = { ...infoOf(incoming, request), ...(body === undefined ? {} : { body }) }
    // A router has removed its mount path, which the server needs for links and cookies.
    if (request.originalUrl !== undefined) incoming.url = request.originalUrl
    const answer =
      isEaten(incoming) && body === undefined ? async () => bodyIsGone() : (it: Request) => server.fetch(it, info)
    void getRequestListener(answer, { overrideGlobalObjects: false })(incoming, outgoing)
  }
}

function infoOf({ socket }: IncomingMessage, extras: RequestExtras): RequestInfo {
  const { ip = socket.remoteAddress, protocol } = extras
  const basePath = mountPath(extras)
  return {
    ...(ip === undefined ? {} : { remoteAddress: ip }),
    secure: protocol === 'https' || 'encrypted' in socket,
    ...(basePath === undefined ? {} : { basePath }),
  }
}

/** Paths of routers with parameters are not taken: their text comes from the client. */
const PLAIN_PATH = /^(?:\/[A-Za-z0-9._~-]+)+$/

/** Where a router has mounted the handler; undefined when it has not, or does not say. */
function mountPath({ url = '', originalUrl = '', baseUrl, routeOptions }: RequestExtras): string | undefined {
  const path = baseUrl || routePath(routeOptions?.url) || removedFrom(originalUrl, url)
  return path !== undefined && PLAIN_PATH.test(path) ? path : undefined
}

function routePath(pattern: string | undefined): string | undefined {
  return pattern?.endsWith('/*') ? pattern.slice(0, -2) : undefined
}

function removedFrom(original: string, url: string): string | undefined {
  return url !== '' && original.length > url.length && original.endsWith(url)
    ? original.slice(0, -url.length)
    : undefined
}

/** The body as bytes, if a body parser has read it. A body that is still unread is not touched. */
function bodyOf(incoming: IncomingMessage, { body }: RequestExtras): Uint8Array | undefined {
  if (!isEaten(incoming) || body === undefined) return undefined
  if (body instanceof Uint8Array) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

function isEaten(incoming: IncomingMessage): boolean {
  return incoming.readableDidRead && (incoming.readableEnded || incoming.readableFlowing !== null)
}

function bodyIsGone(): Response {
  return problemResponse(
    problem(500, 'INTERNAL', 'another middleware has read the body of the request, and left nothing in request.body', {
      hint: 'mount Belfry before that middleware',
    }),
  )
}
