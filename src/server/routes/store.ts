/** What concerns the whole store: who takes part, how things stand, and whether anything may start. */

import { z } from 'zod'
import type { Belfry } from '../../belfry.js'
import type { Frozen } from '../../core/store.js'
import { fresh } from '../http/cached.js'
import { json } from '../http/reply.js'
import { type Route, route } from '../http/route.js'
import { maySee, mustSeeAll } from '../security/caller.js'
import { doctorReport, freezeState, stats } from '../shapes/answers.js'
import { iso, note } from '../shapes/fields.js'
import { instanceResource, toInstanceResource } from '../shapes/holder.js'
import { listOf } from '../shapes/list.js'

const TAG = 'store'
/** However many ask, the store is looked at once in this long. */
const FRESH_MS = 1_000

export function storeRoutes(belfry: Belfry): readonly Route[] {
  return [instancesRoute(belfry), statsRoute(belfry), doctorRoute(belfry), ...freezeRoutes(belfry)]
}

function doctorRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/doctor', id: 'getDoctor', tag: TAG, role: 'operator' },
    summary: 'Looks for what is wrong, or soon will be, with what to do about it.',
    answers: { 200: { description: 'What was looked at, and found.', schema: doctorReport } },
    handle: async (c) => {
      mustSeeAll(c.get('caller'))
      const checks = await belfry.doctor()
      return json({ ok: checks.every(({ findings }) => findings.length === 0), checks })
    },
  })
}

function instancesRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/instances', id: 'listInstances', tag: TAG, role: 'viewer' },
    summary: 'The processes that take part.',
    answers: { 200: { description: 'All of them.', schema: listOf(instanceResource) } },
    handle: async (c) => {
      const [instances, now] = await Promise.all([belfry.instances(), belfry.now()])
      const caller = c.get('caller')
      const data = instances.map((each) => {
        const { jobs, ...rest } = toInstanceResource(each, now.getTime())
        return { ...rest, jobs: jobs.filter((job) => maySee(caller, job)) }
      })
      return json({ data, nextCursor: null })
    },
  })
}

function statsRoute(belfry: Belfry): Route {
  const ask = fresh(() => belfry.stats(), FRESH_MS)
  return route({
    ...{ method: 'get', path: '/v1/stats', id: 'getStats', tag: TAG, role: 'viewer' },
    summary: 'How things stand. Numbers stop at a bound, and say that there are more.',
    answers: { 200: { description: 'As of the last second.', schema: stats } },
    handle: async () => {
      const { now, frozen, ...rest } = await ask()
      return json({ now: iso(now), freeze: toFreeze(frozen), ...rest })
    },
  })
}

function freezeRoutes(belfry: Belfry): readonly Route[] {
  const path = '/v1/freeze'
  const answers = { 200: { description: 'As it is now.', schema: freezeState } }
  const now = async () => toFreeze(await belfry.frozen())
  return [
    route({
      ...{ method: 'get', path, id: 'getFreeze', tag: TAG, role: 'viewer', answers },
      summary: 'Whether anything may start.',
      handle: async () => json(await now()),
    }),
    route({
      ...{ method: 'put', path, id: 'freeze', tag: TAG, role: 'operator', answers },
      summary: 'Keeps all runs from starting. Ticks are recorded all the same.',
      body: z.strictObject({ note: note.exactOptional() }),
      optionalBody: true,
      handle: async (c, { body }) => {
        mustSeeAll(c.get('caller'))
        await belfry.freeze(body.note)
        await c.env.audit(c.get('caller'), 'freeze', '*', body)
        return json(await now())
      },
    }),
    route({
      ...{ method: 'delete', path, id: 'thaw', tag: TAG, role: 'operator', answers },
      summary: 'Lets runs start again.',
      handle: async (c) => {
        mustSeeAll(c.get('caller'))
        await belfry.thaw()
        await c.env.audit(c.get('caller'), 'thaw', '*')
        return json(await now())
      },
    }),
  ]
}

function toFreeze(frozen: Frozen | undefined): z.output<typeof freezeState> {
  if (frozen === undefined) return { frozen: false }
  return { frozen: true, at: iso(frozen.at), ...(frozen.note === undefined ? {} : { note: frozen.note }) }
}
