/** Routes about the whole store: instances, statistics, doctor and freeze. */
import type { z } from 'zod'
import { cachedRead } from '../../api/cached-read.js'
import type { Belfry } from '../../belfry.js'
import type { Frozen } from '../../core/store.js'
import { json } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import { COUNTED } from '../security/quota.js'
import { isVisible, mustSeeAll, seesAll } from '../security/visibility.js'
import { iso } from '../shapes/fields.js'
import { listOf } from '../shapes/list.js'
import { noteRequest } from '../shapes/requests.js'
import { doctorReport, freezeState, instanceResource, stats, toInstanceResource } from '../shapes/store.js'

const TAG = 'store'
/** All callers share one answer for this long, so that their number does not multiply the reads of the store. */
const FRESH_MS = 1_000

export function storeRoutes(belfry: Belfry): readonly Route[] {
  return [instancesRoute(belfry), statsRoute(belfry), doctorRoute(belfry), ...freezeRoutes(belfry)]
}

function doctorRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/doctor', id: 'getDoctor', tag: TAG, role: 'operator' },
    summary: 'Checks for problems, present and coming, and says how to fix them.',
    answers: { 200: { description: 'The checks and their findings.', schema: doctorReport } },
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
    summary: 'All instances of the store.',
    answers: { 200: { description: 'Live and expired.', schema: listOf(instanceResource, 'InstanceList') } },
    handle: async (c) => {
      const [instances, now] = await Promise.all([belfry.instances(), belfry.now()])
      const caller = c.get('caller')
      const data = instances.map((each) => {
        const { jobs, ...rest } = toInstanceResource(each, now.getTime())
        return { ...rest, jobs: jobs.filter((name) => isVisible(caller, 'job', { name })) }
      })
      return json({ data, nextCursor: null })
    },
  })
}

function statsRoute(belfry: Belfry): Route {
  const currentStats = cachedRead(() => belfry.stats(), FRESH_MS)
  return route({
    ...{ method: 'get', path: '/v1/stats', id: 'getStats', tag: TAG, role: 'viewer' },
    summary: 'Numbers of instances and unfinished runs. Counting stops at a bound; `more` tells that there are more.',
    answers: { 200: { description: 'As of the last second.', schema: stats } },
    handle: async (c) => {
      const { now, frozen, instances, ...counts } = await currentStats()
      const shown = seesAll(c.get('caller')) ? counts : {}
      const usage = await usageOf(c)
      return json({ now: iso(now), instances, freeze: toFreeze(frozen), ...shown, ...usage })
    },
  })
}

async function usageOf(c: ServerContext): Promise<object> {
  const caller = c.get('caller')
  if (seesAll(caller) && caller.quota === undefined) return {}
  const [schedules, runs, locks] = await Promise.all(COUNTED.map((kind) => c.env.usage.shown(caller, kind)))
  return { usage: { schedules, runs, locks } }
}

function freezeRoutes(belfry: Belfry): readonly Route[] {
  const path = '/v1/freeze'
  const answers = { 200: { description: 'The state now.', schema: freezeState } }
  const now = async () => toFreeze(await belfry.frozen())
  return [
    route({
      ...{ method: 'get', path, id: 'getFreeze', tag: TAG, role: 'viewer', answers },
      summary: 'Whether the store is frozen.',
      handle: async () => json(await now()),
    }),
    route({
      ...{ method: 'put', path, id: 'freeze', tag: TAG, role: 'operator', answers },
      summary: 'Freezes the store: no run starts. Ticks are still recorded.',
      body: noteRequest,
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
      summary: 'Thaws the store: runs start again.',
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
