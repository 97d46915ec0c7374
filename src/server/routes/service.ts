/** The service itself: health, readiness, metrics, the audit trail and the OpenAPI document. */
import { z } from 'zod'
import { cachedRead } from '../../api/cached-read.js'
import type { Belfry } from '../../belfry.js'
import type { AuditTrail } from '../audit/audit-trail.js'
import { type Login, openApi } from '../http/open-api.js'
import { problem } from '../http/problem.js'
import { content, json } from '../http/reply.js'
import { type Route, route } from '../http/route.js'
import { afterCursor, listReply } from '../security/cursors.js'
import { isVisible, mustSeeAll, visible } from '../security/visibility.js'
import { auditEntry, toAuditEntry } from '../shapes/audit.js'
import { listOf, paging } from '../shapes/list.js'
import { METRICS_TYPE, metricsPage, metricsSource } from '../shapes/metrics-page.js'

const TAG = 'service'
/** /readyz needs no authentication, so it reads the store at most once in this time. */
const READINESS_MS = 250

const okStatus = z.enum(['ok']).meta({ id: 'OkStatus' })

const health = z.strictObject({ status: okStatus }).meta({ id: 'Health' })

const readiness = z
  .strictObject({
    status: okStatus,
    unreachableSinks: z.int().exactOptional().meta({
      description:
        'How many sinks instances cannot reach; `/v1/doctor` names them. The service stays ready: events wait in the store.',
    }),
  })
  .meta({ id: 'Readiness' })

export function serviceRoutes(belfry: Belfry, trail: AuditTrail): readonly Route[] {
  return [auditRoute(trail), metricsRoute(belfry), healthRoute(), readinessRoute(belfry)]
}

function auditRoute(trail: AuditTrail): Route {
  return route({
    ...{ method: 'get', path: '/v1/audit', id: 'listAudit', tag: TAG, role: 'admin' },
    summary: 'Who changed what, newest first. A page may be short; only `nextCursor` tells whether it is the last.',
    query: z.strictObject(paging),
    answers: { 200: { description: 'A page.', schema: listOf(auditEntry, 'AuditList') } },
    handle: async (c, { query: { cursor, limit } }) => {
      const caller = c.get('caller')
      const after = await afterCursor(c, 'listAudit', cursor)
      const page = await trail.list({ limit, ...after, isWanted: (entry) => isVisible(caller, 'audit', entry) })
      const items = visible(caller, 'audit', page.items)
      return json(await listReply(c, 'listAudit', { ...page, items }, toAuditEntry))
    },
  })
}

function metricsRoute(belfry: Belfry): Route {
  const source = metricsSource(belfry)
  return route({
    ...{ method: 'get', path: '/metrics', id: 'getMetrics', tag: TAG, role: 'viewer' },
    summary: 'Metrics of this process in the Prometheus text format.',
    answers: { 200: { description: 'Text format 0.0.4.', schema: z.string(), type: 'text/plain' } },
    handle: async (c) => {
      // The labels name all jobs, so a caller limited to a prefix may not see them.
      mustSeeAll(c.get('caller'))
      return content(await metricsPage(source), METRICS_TYPE)
    },
  })
}

function healthRoute(): Route {
  return route({
    ...{ method: 'get', path: '/healthz', id: 'getHealth', tag: TAG },
    summary: 'Whether this process answers.',
    answers: { 200: { description: 'It does.', schema: health } },
    handle: () => json({ status: 'ok' }),
  })
}

function readinessRoute(belfry: Belfry): Route {
  const unreachableSinks = cachedRead(() => belfry.unreachableSinks(), READINESS_MS)
  return route({
    ...{ method: 'get', path: '/readyz', id: 'getReadiness', tag: TAG },
    summary: 'Whether the store answers, ticks are recorded and runs start; and how many sinks are unreachable.',
    answers: { 200: { description: 'The store answers, and this instance can work.', schema: readiness } },
    handle: async () => {
      // The errors themselves may name servers, and this route needs no authentication.
      const stuck = belfry.stuckParts
      if (stuck.length > 0) {
        throw problem(503, 'NOT_READY', `these parts fail again and again: ${stuck.join(', ')}`, {
          hint: 'the log of this process and belfry doctor say why',
          headers: { 'retry-after': '1' },
        })
      }
      const { length } = await unreachableSinks()
      return json({ status: 'ok', ...(length === 0 ? {} : { unreachableSinks: length }) })
    },
  })
}

/** Serves the OpenAPI document, which describes the other routes and this one. */
export function openApiRoute(others: readonly Route[], login: Login): Route {
  const self: Route = route({
    ...{ method: 'get', path: '/openapi.json', id: 'getOpenApi', tag: TAG },
    summary: 'This document.',
    answers: { 200: { description: 'OpenAPI 3.1.', schema: z.record(z.string(), z.unknown()) } },
    handle: (c) => content(document(c.env.basePath), 'application/json'),
  })
  // The document is built once, because building takes milliseconds and its requests need no authentication.
  let built: { readonly basePath: string; readonly text: string } | undefined
  const document = (basePath: string): string => {
    if (built?.basePath !== basePath)
      built = { basePath, text: JSON.stringify(openApi([...others, self], basePath, login)) }
    return built.text
  }
  return self
}
