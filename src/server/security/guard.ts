/** Authenticates every request before its route handles it. */
import { systemClock } from '../../core/clock.js'
import { Problem } from '../http/problem.js'
import type { ServerContext } from '../http/route.js'
import type { ParsedServerOptions } from '../server-options.js'
import { gateOf } from './authorise.js'
import { type Authorise, LOCAL } from './caller.js'
import { checkHost } from './host-check.js'
import { checkOrigin } from './origin-check.js'
import { mustWait, RateLimit } from './rate-limit.js'

/** How often the caller of a long request is authenticated again. */
const RECHECK_MS = 2_000

export interface Guard {
  /** Sets the caller of a request, or throws. */
  pass(c: ServerContext): Promise<void>
  /** For routes without authentication: counts the request against its address's rate limit, and sets no caller. */
  passOpen(c: ServerContext): void
  readonly authorise: Authorise
}

export function guard({ authorise: given, hosts, limits }: ParsedServerOptions): Guard {
  const authorise = given === undefined ? localAuthorise(hosts) : limited(given, limits)
  const gate = gateOf(given)
  return {
    authorise,
    async pass(c) {
      c.set('caller', await authorise(c.req.raw, c.env.info))
    },
    passOpen(c) {
      gate?.countOpen(c.env.info)
    },
  }
}

/**
 * Calls `end` once the caller is no longer authorised: a stream stays open for hours, and its token may be revoked or expire.
 * A store outage does not call `end`. The returned function stops the checks.
 */
export function whileAuthorised(c: ServerContext, end: () => void): () => void {
  const { authorise, info } = c.env
  let isOver = false
  const recheck = async () => {
    try {
      await authorise(c.req.raw, info)
    } catch (error) {
      if (error instanceof Problem && (error.status === 401 || error.status === 403)) return end()
    }
    if (!isOver) stop = systemClock.after(RECHECK_MS, recheck)
  }
  let stop = systemClock.after(RECHECK_MS, recheck)
  return () => {
    isOver = true
    stop()
  }
}

/** Limits the rate of callers that a host app authenticates. Belfry's own token check (`Gate`) has its own limits. */
function limited(authorise: Authorise, { requestsPerSecond }: ParsedServerOptions['limits']): Authorise {
  if (gateOf(authorise) !== undefined) return authorise
  const rate = new RateLimit(systemClock, { perSecond: requestsPerSecond, burst: requestsPerSecond * 5 })
  return async (request, info) => {
    const caller = await authorise(request, info)
    mustWait(rate.take(caller.name), 'requests from this caller')
    return caller
  }
}

/** Without authentication every caller is admin, so the Host header must be loopback or configured. */
function localAuthorise(hosts: readonly string[]): Authorise {
  return (request) => {
    checkHost(request, hosts)
    checkOrigin(request, { origins: [], required: false })
    return LOCAL
  }
}
