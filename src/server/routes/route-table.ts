/** The route table: every group of routes that the service mounts. A new group is added here. */
import type { Belfry } from '../../belfry.js'
import type { AuditTrail } from '../audit/audit-trail.js'
import type { Login } from '../http/open-api.js'
import type { Route } from '../http/route.js'
import type { Operations } from '../operations/operations.js'
import { gateOf } from '../security/authorise.js'
import type { Authorise } from '../security/caller.js'
import type { ParsedServerOptions } from '../server-options.js'
import { eventsRoute } from './events.js'
import { jobRoutes } from './jobs.js'
import { lockRoutes } from './locks.js'
import { operationRoutes } from './operations.js'
import { runRoutes } from './runs.js'
import { scheduleActionRoutes } from './schedule-actions.js'
import { scheduleRoutes } from './schedules.js'
import { scheduleBulkRoutes } from './schedules-bulk.js'
import { exportRoute } from './schedules-export.js'
import { importRoutes } from './schedules-import.js'
import { openApiRoute, serviceRoutes } from './service.js'
import { sessionRoutes } from './session.js'
import { storeRoutes } from './store.js'

export function allRoutes(
  belfry: Belfry,
  options: ParsedServerOptions,
  trail: AuditTrail,
  operations: Operations,
): readonly Route[] {
  const { authorise } = options
  const routes = [
    ...scheduleRoutes(belfry),
    ...scheduleActionRoutes(belfry, operations),
    ...scheduleBulkRoutes(belfry, options),
    exportRoute(belfry),
    ...importRoutes(belfry, options),
    ...runRoutes(belfry, options),
    ...operationRoutes(belfry, operations),
    ...jobRoutes(belfry),
    ...lockRoutes(belfry),
    ...storeRoutes(belfry),
    eventsRoute(belfry),
    ...serviceRoutes(belfry, trail),
    ...sessionRoutes(gateOf(authorise)),
  ]
  return [...routes, openApiRoute(routes, loginOf(authorise))]
}

function loginOf(authorise: Authorise | undefined): Login {
  if (authorise === undefined) return 'none'
  const gate = gateOf(authorise)
  if (gate === undefined) return 'own'
  return gate.isOpen ? 'tokens or none' : 'tokens'
}
