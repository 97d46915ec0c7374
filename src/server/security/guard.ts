/** What every request passes: who asks, what every answer carries, and a line for the log. */
import type { MiddlewareHandler } from 'hono'
import { systemClock } from '../../core/clock.js'
import type { Authorise, Caller } from '../caller.js'
import { Problem } from '../problem.js'
import { logRequest } from '../request-log.js'
import type { ServerEnv } from '../server-env.js'
import type { ParsedServerOptions } from '../server-options.js'
import { gateOf } from './authorise.js'
import { addSecurityHeaders } from './headers.js'
import { checkHost } from './host-check.js'
import { checkOrigin } from './origin-check.js'
import { mustWait, RateLimit } from './rate-limit.js'

/** How often an answer that goes on is asked for anew. */
const ALLOWANCE_MS = 2_000

const LOCAL: Caller = { name: 'local', role: 'admin' }

/** Outermost: by the time it goes on, whatever was thrown further in has become an answer. */
export function answering({ log }: ParsedServerOptions): MiddlewareHandler<ServerEnv> {
  return async (c, next) => {
    const startedAt = systemClock.monotonic()
    await next()
    const { info } = c.env
    addSecurityHeaders(c.res.headers, info.secure ?? false)
    const caller: Caller | undefined = c.get('caller')
    logRequest(log, systemClock, { request: c.req.raw, info, caller, status: c.res.status, startedAt })
  }
}

/** Lets a request pass once it is known who asks. What is open to all has no caller. */
export function guard(
  options: ParsedServerOptions,
  isOpen: (method: string, path: string) => boolean,
): MiddlewareHandler<ServerEnv> {
  const { authorise: given, hosts, limits } = options
  const authorise = given === undefined ? localAuthorise(hosts) : limited(given, limits)
  const gate = gateOf(given)
  return async (c, next) => {
    if (isOpen(c.req.method, c.req.path)) gate?.arrive(c.env.info)
    else {
      const ask = () => authorise(c.req.raw, c.env.info)
      c.set('caller', await ask())
      c.set('whileAllowed', (end) => watchAllowance(ask, end))
    }
    await next()
  }
}

/** A stream lives for hours, a token may be revoked at any time. A store that does not answer ends nothing. */
function watchAllowance(ask: () => Promise<Caller>, end: () => void): () => void {
  let stop = () => {}
  const look = async () => {
    try {
      await ask()
    } catch (error) {
      if (error instanceof Problem && (error.status === 401 || error.status === 403)) return end()
    }
    if (!over) stop = systemClock.after(ALLOWANCE_MS, look)
  }
  let over = false
  stop = systemClock.after(ALLOWANCE_MS, look)
  return () => {
    over = true
    stop()
  }
}

/** Callers that a host app names. Tokens are counted at their gate, and whoever is on this machine is not counted. */
function limited(authorise: Authorise, { requestsPerSecond }: ParsedServerOptions['limits']): Authorise {
  if (gateOf(authorise) !== undefined) return authorise
  const rate = new RateLimit(systemClock, { perSecond: requestsPerSecond, burst: requestsPerSecond * 5 })
  return async (request, info) => {
    const caller = await authorise(request, info)
    mustWait(rate.take(caller.name), 'requests of this caller')
    return caller
  }
}

/** Everybody is admin, on this machine or by a host that was named. */
export function localAuthorise(hosts: readonly string[]): Authorise {
  return async (request) => {
    checkHost(request, hosts)
    checkOrigin(request, { origins: [], required: false })
    return LOCAL
  }
}
