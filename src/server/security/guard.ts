/** What every request passes before its route is asked: who asks. */
import { systemClock } from '../../core/clock.js'
import { Problem } from '../http/problem.js'
import type { ServerContext } from '../http/route.js'
import type { ParsedServerOptions } from '../server-options.js'
import { gateOf } from './authorise.js'
import type { Authorise, Caller } from './caller.js'
import { checkHost } from './host-check.js'
import { checkOrigin } from './origin-check.js'
import { mustWait, RateLimit } from './rate-limit.js'

/** How often an answer that goes on is asked for anew. */
const ALLOWANCE_MS = 2_000

const LOCAL: Caller = { name: 'local', role: 'admin' }

export interface Guard {
  /** Lets a request pass once it is known who asks, or throws. Most often that is known at once. */
  pass(c: ServerContext): void | Promise<void>
  /** What is open to all has no caller. */
  passOpen(c: ServerContext): void
  readonly authorise: Authorise
}

export function guard({ authorise: given, hosts, limits }: ParsedServerOptions): Guard {
  const authorise = given === undefined ? localAuthorise(hosts) : limited(given, limits)
  const gate = gateOf(given)
  return {
    authorise,
    pass(c) {
      const caller = authorise(c.req.raw, c.env.info)
      if (!('then' in caller)) return c.set('caller', caller)
      return Promise.resolve(caller).then((known) => c.set('caller', known))
    },
    passOpen(c) {
      gate?.arrive(c.env.info)
    },
  }
}

/**
 * For answers that go on: calls back once the caller is no longer let in, because a stream lives for hours and a token may
 * be revoked at any time. A store that does not answer ends nothing. The returned function ends the watch.
 */
export function whileAllowed(c: ServerContext, end: () => void): () => void {
  const { authorise, info } = c.env
  let stop = () => {}
  const look = async () => {
    try {
      await authorise(c.req.raw, info)
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
  return (request) => {
    checkHost(request, hosts)
    checkOrigin(request, { origins: [], required: false })
    return LOCAL
  }
}
