import { z } from 'zod'
import type { Belfry } from '../../belfry.js'
import { inTurns } from '../../core/in-turns.js'
import { describeHolders } from '../../core/locks/holder.js'
import type { Lease } from '../../core/locks/lease.js'
import { durationMs } from '../../time/duration.js'
import { problem } from '../http/problem.js'
import { json, noContent, type Reply } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import { stopping, whileConnected } from '../http/while-connected.js'
import type { Caller } from '../security/caller.js'
import { afterCursor, listReply } from '../security/cursors.js'
import { ownHolder, placelessHolder, shownHolder, storedHolder } from '../security/lock-holder.js'
import { isVisible, mayMake, seesAll, type Visible, visible, visiblePrefix } from '../security/visibility.js'
import { digits } from '../shapes/fields.js'
import { listOf, paging } from '../shapes/list.js'
import { leaseResource, lockReset, lockResource, toLeaseResource } from '../shapes/lock.js'
import { acquisition, holder, noFields, renewal } from '../shapes/requests.js'

const TAG = 'locks'
const PATH = '/v1/locks/{name}'
/** For a caller with a prefix, a page looks up the runs of its leases. */
const MAX_LOOKED_UP = 100

const HELD = { name: '$response.body#/name', token: '$response.body#/token' }
const lease = {
  description: 'The lease.',
  schema: leaseResource,
  links: { release: { operationId: 'releaseLock', parameters: HELD } },
}

export function lockRoutes(belfry: Belfry): readonly Route[] {
  return [...readRoutes(belfry), acquireRoute(belfry), ...holderRoutes(belfry), resetRoute(belfry)]
}

function readRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      ...{ method: 'get', path: '/v1/locks', id: 'listLocks', tag: TAG, role: 'viewer' },
      summary: 'All held locks in order of name, including the keys of exclusive runs.',
      query: z.strictObject({ prefix: z.string().exactOptional(), ...paging }),
      answers: { 200: { description: 'A page.', schema: listOf(leaseResource, 'LeaseList') } },
      handle: async (c, { query: { cursor, prefix, limit } }) => {
        const scope = visiblePrefix(c.get('caller'), prefix)
        if (scope === undefined) return json({ data: [], nextCursor: null })
        const most = seesAll(c.get('caller')) ? limit : Math.min(limit, MAX_LOOKED_UP)
        const after = await afterCursor(c, 'listLocks', cursor)
        const page = await belfry.locks.list({ prefix: scope, limit: most, ...after })
        const items = await visibleLeases(belfry, c.get('caller'), page.items)
        return json(await listReply(c, 'listLocks', { ...page, items }, toLeaseResource))
      },
    }),
    route({
      ...{ method: 'get', path: PATH, id: 'getLock', tag: TAG, role: 'viewer' },
      summary: 'The current holders of a lock.',
      answers: { 200: { description: 'Its holders.', schema: lockResource } },
      handle: async (c) => {
        const name = nameParam(c)
        const holders = await visibleLeases(belfry, c.get('caller'), await holdersOf(belfry, c, name))
        return json({ name, holders: holders.map(toLeaseResource) })
      },
    }),
  ]
}

function acquireRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'put', path: PATH, id: 'acquireLock', tag: TAG, role: 'operator', refuses: [409] },
    summary: 'Acquires a lock until its ttl is over, unless it is renewed.',
    body: acquisition,
    optionalBody: true,
    answers: { 200: lease },
    handle: async (c, { body }) => {
      const name = nameParam(c)
      mayMake(c.get('caller'), name)
      const waitMs = durationMs(body.wait ?? 0)
      const holder = storedHolder(c.get('caller'), body.holder)
      const grant = (signal: AbortSignal) => belfry.locks.grant(name, { ...body, holder, signal })
      const acquire = () => (waitMs === 0 ? grant(c.req.raw.signal) : whileConnected(c, grant))
      const wanted = await newPlaces(belfry, c.get('caller'), name, holder)
      const granted = await c.env.usage.within(c.get('caller'), 'locks', wanted, acquire, (lease) => (lease ? 1 : 0))
      if (granted === undefined && waitMs > 0 && c.env.closing.aborted) throw stopping()
      if (granted === undefined)
        throw problem(409, 'LOCK_BUSY', `the lock "${name}" is held by ${await whoHolds(belfry, c, name)}`)
      return answer(c, granted)
    },
  })
}

/** Of a run that the caller may not see, only its time is named. */
async function whoHolds(belfry: Belfry, c: ServerContext, name: string): Promise<string> {
  const holders = await visibleLeases(belfry, c.get('caller'), await holdersOf(belfry, c, name))
  return describeHolders(holders.map((lease) => ({ ...lease, holder: shownHolder(lease.holder) })))
}

/** How many places of the caller's quota a lock needs: none if its holder has it already. */
async function newPlaces(belfry: Belfry, { quota }: Caller, name: string, own: string): Promise<number> {
  if (quota?.locks === undefined) return 0
  return (await belfry.locks.inspect(name)).some(({ holder }) => holder === own) ? 0 : 1
}

function holderRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      ...{ method: 'patch', path: PATH, id: 'renewLock', tag: TAG, role: 'operator', refuses: [409] },
      summary: 'Renews a lock: its ttl starts again now.',
      body: renewal,
      answers: { 200: lease },
      handle: async (c, { body: { ttl, token, holder } }) => {
        const name = nameParam(c)
        const own = await holderOf(belfry, c, name, token, holder)
        const renewed = own === undefined ? undefined : await belfry.locks.renewGrant(name, { token, holder: own }, ttl)
        if (renewed === undefined) throw lost(name)
        return answer(c, renewed)
      },
    }),
    route({
      ...{ method: 'delete', path: PATH, id: 'releaseLock', tag: TAG, role: 'operator', refuses: [409, 422] },
      summary: 'Releases a lock.',
      query: z.strictObject({
        token: digits(0, Number.MAX_SAFE_INTEGER).meta({ description: 'The token from acquiring.' }),
        holder: holder.exactOptional(),
      }),
      answers: { 204: { description: 'Released.' } },
      handle: async (c, { query: { token, holder } }) => {
        const name = nameParam(c)
        const own = await holderOf(belfry, c, name, token, holder)
        const released = own !== undefined && (await belfry.locks.releaseGrant(name, { token, holder: own }))
        if (!released) throw lost(name)
        return noContent()
      },
    }),
  ]
}

function resetRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'post', path: `${PATH}/reset`, id: 'resetLock', tag: TAG, role: 'admin', idempotent: true },
    summary: 'Takes a lock from all its holders. A run that held it is fenced and taken over.',
    body: noFields,
    optionalBody: true,
    answers: { 200: { description: 'The number of holders it had.', schema: lockReset } },
    handle: async (c) => {
      const name = nameParam(c)
      await mustSeeRuns(belfry, c, name)
      const reset = mayTouch(c, name) ? await belfry.locks.reset(name) : 0
      if (reset > 0) await c.env.audit(c.get('caller'), 'lock.reset', name, { reset })
      return json({ reset })
    },
  })
}

/** The stored holder of the caller's lease; undefined when the caller cannot hold it. */
async function holderOf(
  belfry: Belfry,
  c: ServerContext,
  name: string,
  token: number,
  holder: string | undefined,
): Promise<string | undefined> {
  const caller = c.get('caller')
  if (!mayTouch(c, name)) return undefined
  return holder === undefined
    ? ownHolder(caller, await belfry.locks.inspect(name), token)
    : storedHolder(caller, holder)
}

function mayTouch(c: ServerContext, name: string): boolean {
  return isVisible(c.get('caller'), 'lease', { name })
}

async function holdersOf(belfry: Belfry, c: ServerContext, name: string): Promise<readonly Lease[]> {
  return mayTouch(c, name) ? belfry.locks.inspect(name) : []
}

/** The leases that the caller may see. One that a hidden run holds does not name the run. */
async function visibleLeases(belfry: Belfry, caller: Caller, leases: readonly Lease[]): Promise<Visible<Lease>[]> {
  const shown = await inTurns(visible(caller, 'lease', leases), async (lease) => {
    if (seesAll(caller)) return lease
    const { run: id, ...rest } = { ...lease, holder: placelessHolder(lease.holder) }
    if (id === undefined) return rest
    const run = await belfry.runs.get(id)
    return run !== undefined && isVisible(caller, 'run', run) ? lease : { ...rest, holder: 'a run' }
  })
  return visible(caller, 'lease', shown)
}

/** A reset takes a run over. Throws FORBIDDEN if the lock is the exclusive key of a run that the caller may not see. */
async function mustSeeRuns(belfry: Belfry, c: ServerContext, name: string): Promise<void> {
  const holders = await holdersOf(belfry, c, name)
  const shown = await visibleLeases(belfry, c.get('caller'), holders)
  const isHidden = holders.some(({ run }, at) => run !== undefined && shown[at]?.run === undefined)
  if (isHidden) throw problem(403, 'FORBIDDEN', `the lock "${name}" is held by a run that you may not see`)
}

function answer(c: ServerContext, lease: Lease): Reply {
  if (!isVisible(c.get('caller'), 'lease', lease)) throw lost(lease.name)
  return json(toLeaseResource(lease))
}

function lost(name: string) {
  return problem(409, 'LEASE_LOST', `you do not hold the lock "${name}" with this token`)
}

function nameParam(c: ServerContext): string {
  return c.req.param('name') ?? ''
}
