/** Visibility by prefix: routes answer as if ids outside the caller's prefix did not exist. */
import type { Json } from '../../core/checks/json.js'
import type { Run } from '../../core/runs/run.js'
import { problem } from '../http/problem.js'
import type { ServerContext } from '../http/route.js'
import { type Caller, maySee } from './caller.js'

/** The id in the path. Throws SCHEDULE_NOT_FOUND if the caller may not see it. */
export function visibleId(c: ServerContext): string {
  const id = c.req.param('id') ?? ''
  if (maySee(c.get('caller'), id)) return id
  throw problem(404, 'SCHEDULE_NOT_FOUND', `there is no schedule "${id}"`)
}

/** The narrower of the caller's prefix and the requested one; undefined when no id can have both. */
export function visiblePrefix({ prefix: own = '' }: Caller, requested = ''): string | undefined {
  if (requested.startsWith(own)) return requested
  return own.startsWith(requested) ? own : undefined
}

/** A run is visible under the id of its schedule; without a schedule, under the name of its job or sink. */
export function maySeeRun(caller: Caller, { schedule, target }: Pick<Run, 'schedule' | 'target'>): boolean {
  return maySee(caller, schedule ?? ('job' in target ? target.job : target.sink))
}

/** What decides which things a caller may see, and how much of them. */
export function scopeOf({ role, prefix }: Caller): Json {
  return { role, prefix: prefix ?? null }
}
