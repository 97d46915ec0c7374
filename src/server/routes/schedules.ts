import { z } from 'zod'
import type { PutOutcome } from '../../api/schedules/put-outcome.js'
import type { ScheduleFields } from '../../api/schedules/schedule-input.js'
import type { ScheduleView } from '../../api/schedules/schedule-view.js'
import type { PutOptions, SchedulePatch } from '../../api/schedules/schedules.js'
import type { Belfry } from '../../belfry.js'
import { BelfryError } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import { conditionally, etag } from '../http/conditions.js'
import { problem } from '../http/problem.js'
import { json, noContent, type Reply, type ReplyHeaders } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import { type Place, sizedPage } from '../http/sized-page.js'
import type { Caller } from '../security/caller.js'
import { isRestricted, mustUse, mustUseNamed } from '../security/targets.js'
import { isVisible, mayMake, visible, visibleId, visiblePrefix } from '../security/visibility.js'
import { flag, scheduleState } from '../shapes/fields.js'
import { LOOK, listOf, paging } from '../shapes/list.js'
import {
  newSchedule,
  scheduleId,
  scheduleInput,
  schedulePatch,
  scheduleResource,
  toRecent,
  toScheduleResource,
} from '../shapes/schedule.js'

const TAG = 'schedules'
const MAX_RECENT = 100
/** How often a patch is tried again after another write came between its check and itself. */
const MAX_PATCHES = 100
/** All creations share this object, because the audit trail groups entries whose detail is the same object. */
const CREATED = { outcome: 'created' }
const IF_MATCH = { 'If-Match': 'Only if the schedule has this ETag; "*" means any version.' }
const VERSIONED = { ETag: 'The version, for If-Match.' }
const LINKS = {
  get: { operationId: 'getSchedule', parameters: { id: '$response.body#/id' } },
  trigger: { operationId: 'triggerSchedule', parameters: { id: '$response.body#/id' } },
  remove: { operationId: 'removeSchedule', parameters: { id: '$response.body#/id' } },
}
const one = (description: string) => ({ description, schema: scheduleResource, headers: VERSIONED, links: LINKS })

const listQuery = z.strictObject({
  prefix: z.string().exactOptional().meta({ description: 'Only ids that begin with this.' }),
  state: scheduleState.exactOptional(),
  job: z.string().exactOptional(),
  to: z.string().exactOptional(),
  recent: flag
    .exactOptional()
    .meta({ description: 'Add the outcome of their newest runs. A page then has at most 100.' }),
  ...paging,
})

export function scheduleRoutes(belfry: Belfry): readonly Route[] {
  return [listSchedules(belfry), createSchedule(belfry), getSchedule(belfry), ...writeRoutes(belfry)]
}

function listSchedules(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/schedules', id: 'listSchedules', tag: TAG, role: 'viewer' },
    summary:
      'Schedules in order of id. A page may be shorter than its limit; only `nextCursor` tells whether it is the last.',
    query: listQuery,
    answers: { 200: { description: 'A page.', schema: listOf(scheduleResource, 'ScheduleList') } },
    handle: async (c, { query: { cursor, prefix, recent, limit, ...filters } }) => {
      const scope = visiblePrefix(c.get('caller'), prefix)
      if (scope === undefined) return json({ data: [], nextCursor: null })
      const most = recent === true ? Math.min(limit, MAX_RECENT) : limit
      const place = { limit: most, cursor }
      const read = async (from: Place) => {
        const page = await belfry.schedules.list({ ...filters, ...from, prefix: scope, look: LOOK })
        return { ...page, items: visible(c.get('caller'), 'schedule', page.items) }
      }
      if (recent !== true) return sizedPage(c, 'listSchedules', place, read, toScheduleResource)
      const withRecent = async (from: Place) => {
        const page = await read(from)
        const runs = await inTurns(page.items, ({ id }) => belfry.schedules.recent(id))
        return { ...page, items: page.items.map((schedule, at) => ({ schedule, recent: runs[at] })) }
      }
      return sizedPage(c, 'listSchedules', place, withRecent, (each) => ({
        ...{ ...toScheduleResource(each.schedule), recent: toRecent(each.recent) },
      }))
    },
  })
}

function createSchedule(belfry: Belfry): Route {
  return route({
    ...{ method: 'post', path: '/v1/schedules', id: 'createSchedule', tag: TAG, role: 'operator', idempotent: true },
    summary: 'Creates a schedule; without an id the service chooses one.',
    body: newSchedule,
    answers: {
      201: { ...one('Created.'), headers: { ...VERSIONED, Location: 'The path of the schedule.' } },
    },
    handle: async (c, { body, repeatable }) => {
      const caller = c.get('caller')
      mustUseNamed(caller, body)
      const unique = repeatable?.name
      const isNamed = body.id !== undefined || unique !== undefined
      const schedule = await c.env.usage.within(caller, 'schedules', 1, () =>
        isNamed
          ? createNamed(belfry, caller, body, unique)
          : belfry.schedules.add(body, caller.prefix === undefined ? {} : { prefix: caller.prefix }),
      )
      const { id } = schedule
      await c.env.audit(caller, 'schedule.put', id, CREATED)
      return answer(c, schedule, 201, { location: `${c.env.basePath}${c.req.path}/${encodeURIComponent(id)}` })
    },
  })
}

/** Creates a schedule under the id in the body, or else under a name derived from the Idempotency-Key. */
async function createNamed(
  belfry: Belfry,
  caller: Caller,
  { id: given, ...input }: z.output<typeof newSchedule>,
  unique: string | undefined,
): Promise<ScheduleView> {
  const id = given ?? `${caller.prefix ?? ''}${unique}`
  mayMake(caller, id)
  try {
    return await belfry.schedules.put(id, input, { ifVersion: 0 })
  } catch (error) {
    if (!(error instanceof BelfryError) || error.code !== 'VERSION_CONFLICT') throw error
    // With an Idempotency-Key, the existing schedule may come from an earlier try of this request whose answer was lost.
    const isOwn = unique !== undefined && (given === undefined || (await isStored(belfry, id, input)))
    const own = isOwn ? await belfry.schedules.get(id) : undefined
    if (own !== undefined) return own
    throw problem(409, 'SCHEDULE_DUPLICATE', `there is already a schedule "${id}"`, {
      hint: 'PUT /v1/schedules/{id} replaces it',
    })
  }
}

/** Whether the stored schedule equals the input. */
async function isStored(belfry: Belfry, id: string, input: ScheduleFields): Promise<boolean> {
  const { changes } = await belfry.schedules.apply({ [id]: input }, { dryRun: true })
  return changes.length === 0
}

function getSchedule(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/schedules/{id}', id: 'getSchedule', tag: TAG, role: 'viewer' },
    summary: 'One schedule.',
    answers: { 200: one('The schedule.') },
    handle: async (c) => {
      const id = visibleId(c)
      const schedule = await belfry.schedules.get(id)
      if (schedule === undefined) throw noSchedule(id)
      return answer(c, schedule)
    },
  })
}

function writeRoutes(belfry: Belfry): readonly Route[] {
  const path = '/v1/schedules/{id}'
  return [
    route({
      ...{ method: 'put', path, id: 'putSchedule', tag: TAG, role: 'operator', refuses: [409] },
      summary: 'Creates or replaces a schedule. An equal schedule changes nothing.',
      body: scheduleInput,
      headers: { ...IF_MATCH, 'If-None-Match': '"*": only if the schedule does not exist.' },
      answers: { 200: one('Replaced, or unchanged.'), 201: one('Created.') },
      handle: async (c, { body }) => {
        const id = idParam(c)
        mayMake(c.get('caller'), id)
        checkId(id)
        mustUseNamed(c.get('caller'), body)
        const put = () => conditionally(c, belfry, id, (options) => belfry.schedules.put(id, body, options))
        const wanted = await newPlaces(belfry, c.get('caller'), id)
        const written = await c.env.usage.within(c.get('caller'), 'schedules', wanted, put, isCreated)
        return answerWritten(c, 'schedule.put', written)
      },
    }),
    route({
      ...{ method: 'patch', path, id: 'patchSchedule', tag: TAG, role: 'operator' },
      summary: 'Changes some fields of a schedule; null removes one.',
      body: schedulePatch,
      headers: IF_MATCH,
      answers: { 200: one('The schedule now.') },
      handle: async (c, { body }) => {
        const id = visibleId(c)
        const written = await conditionally(c, belfry, id, (options) =>
          patched(belfry, c.get('caller'), id, body, options),
        )
        return answerWritten(c, 'schedule.patch', written)
      },
    }),
    route({
      ...{ method: 'delete', path, id: 'removeSchedule', tag: TAG, role: 'operator' },
      summary: 'Removes a schedule. Running runs continue; runs that never started are skipped.',
      headers: IF_MATCH,
      answers: { 204: { description: 'Removed.' } },
      handle: async (c) => {
        const id = visibleId(c)
        const removed = await conditionally(c, belfry, id, (options) => belfry.schedules.remove(id, options))
        if (!removed) throw noSchedule(id)
        await c.env.audit(c.get('caller'), 'schedule.remove', id)
        return noContent()
      },
    }),
  ]
}

/** How many places of the caller's quota a put needs: none for a schedule that exists. */
async function newPlaces(belfry: Belfry, { quota }: Caller, id: string): Promise<number> {
  return quota?.schedules === undefined || (await belfry.schedules.get(id)) !== undefined ? 0 : 1
}

function isCreated({ outcome }: PutOutcome): number {
  return outcome === 'created' ? 1 : 0
}

/**
 * Patches a schedule. The patched schedule must name a target that the caller may use, and another caller may change the
 * target meanwhile. So the patch of a restricted caller applies to the version that was checked, and is tried again.
 */
async function patched(
  belfry: Belfry,
  caller: Caller,
  id: string,
  changes: SchedulePatch,
  options: PutOptions,
): Promise<PutOutcome> {
  if (!isRestricted(caller)) return belfry.schedules.patch(id, changes, options)
  for (let attempt = 1; ; attempt += 1) {
    const current = await belfry.schedules.get(id)
    if (current === undefined) throw noSchedule(id)
    if (typeof changes.job !== 'string' && typeof changes.to !== 'string') mustUse(caller, current.definition.target)
    mustUseNamed(caller, changes)
    try {
      return await belfry.schedules.patch(id, changes, { ifVersion: current.version, ...options })
    } catch (error) {
      const isRaced = error instanceof BelfryError && error.code === 'VERSION_CONFLICT'
      if (!isRaced || options.ifVersion !== undefined || attempt === MAX_PATCHES) throw error
    }
  }
}

async function answerWritten(c: ServerContext, action: string, schedule: PutOutcome): Promise<Reply> {
  const { outcome } = schedule
  if (outcome !== 'unchanged') {
    await c.env.audit(c.get('caller'), action, schedule.id, { outcome, version: schedule.version })
  }
  return answer(c, schedule, outcome === 'created' ? 201 : 200)
}

export function answer(c: ServerContext, schedule: ScheduleView, status = 200, headers: ReplyHeaders = {}): Reply {
  if (!isVisible(c.get('caller'), 'schedule', schedule)) throw noSchedule(schedule.id)
  return json(toScheduleResource(schedule), status, { etag: etag(schedule.version), ...headers })
}

export function noSchedule(id: string) {
  return problem(404, 'SCHEDULE_NOT_FOUND', `there is no schedule "${id}"`)
}

function idParam(c: ServerContext): string {
  return c.req.param('id') ?? ''
}

/** Refuses ids that the library refuses, and ids that a URL's path cannot carry. */
function checkId(id: string): void {
  const checked = scheduleId.safeParse(id)
  if (checked.success) return
  const message = checked.error.issues[0]?.message ?? 'it is not allowed'
  throw problem(422, 'NAME_INVALID', message, { errors: [{ pointer: 'id', message }] })
}
