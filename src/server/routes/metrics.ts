import { z } from 'zod'
import type { Belfry } from '../../belfry.js'
import { content } from '../http/reply.js'
import { type Route, route } from '../http/route.js'
import { mustSeeAll } from '../security/caller.js'
import { METRICS_TYPE, metricsPage, metricsSource } from '../shapes/metrics-page.js'

export function metricsRoute(belfry: Belfry): Route {
  const source = metricsSource(belfry)
  return route({
    ...{ method: 'get', path: '/metrics', id: 'getMetrics', tag: 'service', role: 'viewer' },
    summary: 'Metrics of this process, as Prometheus reads them.',
    answers: { 200: { description: 'Text format 0.0.4.', schema: z.string(), type: 'text/plain' } },
    handle: async (c) => {
      // Names of jobs are among them.
      mustSeeAll(c.get('caller'))
      return content(await metricsPage(source), METRICS_TYPE)
    },
  })
}
