/** The Hono app: who is asked in which order, and what becomes of errors. */
import { Hono } from 'hono'
import type { Belfry } from '../belfry.js'
import { errorRecord } from '../core/errors.js'
import type { AuditTrail } from './audit-trail.js'
import type { Audit } from './caller.js'
import { problem, problemResponse, toProblem } from './problem.js'
import { honoPath, mount, type Route } from './route.js'
import { auditRoute } from './routes/audit.js'
import { eventsRoute } from './routes/events.js'
import { healthRoutes } from './routes/health.js'
import { jobRoutes } from './routes/jobs.js'
import { lockRoutes } from './routes/locks.js'
import { metricsRoute } from './routes/metrics.js'
import { openApiRoute } from './routes/openapi.js'
import { runRoutes } from './routes/runs.js'
import { scheduleActionRoutes } from './routes/schedule-actions.js'
import { scheduleRoutes } from './routes/schedules.js'
import { scheduleBulkRoutes } from './routes/schedules-bulk.js'
import { scheduleLineRoutes } from './routes/schedules-lines.js'
import { sessionRoutes } from './routes/session.js'
import { storeRoutes } from './routes/store.js'
import { gateOf } from './security/authorise.js'
import { crowds } from './security/crowd.js'
import { answering, guard } from './security/guard.js'
import type { ServerEnv } from './server-env.js'
import type { ParsedServerOptions } from './server-options.js'

/** Everything that can be asked for. */
export function allRoutes(belfry: Belfry, options: ParsedServerOptions, trail: AuditTrail): readonly Route[] {
  const { basePath, authorise } = options
  const routes = [
    ...scheduleRoutes(belfry),
    ...scheduleActionRoutes(belfry),
    ...scheduleBulkRoutes(belfry, options),
    ...scheduleLineRoutes(belfry, options),
    ...runRoutes(belfry, options),
    ...jobRoutes(belfry),
    ...lockRoutes(belfry),
    ...storeRoutes(belfry),
    eventsRoute(belfry),
    auditRoute(trail),
    metricsRoute(belfry),
    ...sessionRoutes(gateOf(authorise), basePath),
    ...healthRoutes(belfry),
  ]
  return [...routes, openApiRoute(routes, basePath)]
}

export function app(
  belfry: Belfry,
  options: ParsedServerOptions,
  trail: AuditTrail,
  closing: AbortSignal,
): Hono<ServerEnv> {
  const routes = allRoutes(belfry, options, trail)
  const open = new Set(
    routes
      .filter(({ role }) => role === undefined)
      .map(({ method, path }) => `${method.toUpperCase()} ${options.basePath}${honoPath(path)}`),
  )
  const audit: Audit = options.audit ? (...entry) => trail.note(...entry) : async () => {}
  const held = crowds()
  const hono = new Hono<ServerEnv>().basePath(options.basePath)
  hono.use(answering(options))
  hono.use(async (c, next) => {
    checkUrl(c.req.url)
    c.set('audit', audit)
    c.set('closing', closing)
    c.set('crowds', held)
    await next()
  })
  hono.use(guard(options, (method, path) => open.has(`${method === 'HEAD' ? 'GET' : method} ${path}`)))
  mount(hono, routes, { belfry, options })
  hono.notFound((c) => {
    return problemResponse(problem(404, 'NOT_FOUND', `there is nothing at ${c.req.path.slice(0, 200)}`), c.req.path)
  })
  hono.onError((error, c) => {
    const found = toProblem(error)
    if (found.code === 'INTERNAL') {
      options.log.error({ method: c.req.method, path: c.req.path, err: errorRecord(error) }, 'a request failed')
    }
    return problemResponse(found, c.req.path)
  })
  return hono
}

/** Ids in paths are percent-encoded; what is not well-formed is nobody's id, and no name has control characters. */
function checkUrl(url: string): void {
  if (!url.includes('%')) return
  if (CONTROLS.test(url)) throw problem(400, 'REQUEST_INVALID', 'the URL holds control characters')
  try {
    decodeURIComponent(new URL(url).pathname)
  } catch {
    throw problem(400, 'REQUEST_INVALID', 'the path is not well-formed: percent-encode ids as UTF-8')
  }
}

/** U+0000 to U+001F, U+007F, and U+0080 to U+009F as UTF-8 writes them. */
const CONTROLS = /%(?:[01][0-9a-f]|7f|c2%[89][0-9a-f])/i
