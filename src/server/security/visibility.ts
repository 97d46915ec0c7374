/** What a caller can see: outside of its prefix things are as if they were not there. */
import type { Run } from '../../core/run.js'
import { problem } from '../http/problem.js'
import type { ServerContext } from '../http/route.js'
import { type Caller, maySee } from './caller.js'

/** The id in the path, if it lies within the caller's prefix. */
export function sightedId(c: ServerContext): string {
  const id = c.req.param('id') ?? ''
  if (maySee(c.get('caller'), id)) return id
  throw problem(404, 'SCHEDULE_NOT_FOUND', `there is no schedule "${id}"`)
}

/** The narrower of the caller's prefix and the one asked for; undefined when they have nothing in common. */
export function sightedPrefix({ prefix: own = '' }: Caller, asked = ''): string | undefined {
  if (asked.startsWith(own)) return asked
  return own.startsWith(asked) ? own : undefined
}

/** A run belongs to its schedule, or else to its job. */
export function maySeeRun(caller: Caller, { schedule, target }: Pick<Run, 'schedule' | 'target'>): boolean {
  return maySee(caller, schedule ?? ('job' in target ? target.job : target.sink))
}
