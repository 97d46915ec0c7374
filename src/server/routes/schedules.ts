import { z } from 'zod'
import type { PutOutcome } from '../../api/schedules/put-outcome.js'
import type { ScheduleInput } from '../../api/schedules/schedule-input.js'
import type { ScheduleView } from '../../api/schedules/schedule-view.js'
import type { Belfry } from '../../belfry.js'
import { BelfryError } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import { conditionally, etag } from '../http/conditions.js'
import { uniqueName } from '../http/idempotency.js'
import { problem } from '../http/problem.js'
import { json, noContent, type Reply, type ReplyHeaders } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import { type Caller, mayMake } from '../security/caller.js'
import { sightedId, sightedPrefix } from '../security/visibility.js'
import { scheduleState } from '../shapes/fields.js'
import { after, LOOK, listOf, paging, toList } from '../shapes/list.js'
import {
  isForLibrary,
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
/** One object for all, so that the audit trail sees that they say the same. */
const CREATED = { outcome: 'created' }
const IF_MATCH = { 'If-Match': 'Only if the schedule has this ETag; "*" for whichever, if it is there.' }
const VERSIONED = { ETag: 'The version, for If-Match.' }
const one = (description: string) => ({ description, schema: scheduleResource, headers: VERSIONED })

const listQuery = z.strictObject({
  prefix: z.string().exactOptional().meta({ description: 'Only ids that begin with this.' }),
  state: scheduleState.exactOptional(),
  job: z.string().exactOptional(),
  sink: z.string().exactOptional(),
  recent: z
    .enum(['true', 'false'])
    .exactOptional()
    .meta({ description: 'With how their newest runs went. At most 100 a page then.' }),
  ...paging,
})

export function scheduleRoutes(belfry: Belfry): readonly Route[] {
  return [listSchedules(belfry), createSchedule(belfry), getSchedule(belfry), ...writeRoutes(belfry)]
}

function listSchedules(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/schedules', id: 'listSchedules', tag: TAG, role: 'viewer' },
    summary:
      'Schedules in order of id. A page may be shorter than its limit; only `nextCursor` says that it is the last.',
    query: listQuery,
    answers: { 200: { description: 'A page.', schema: listOf(scheduleResource) } },
    handle: async (c, { query: { cursor, prefix, recent, limit, ...filters } }) => {
      const scope = sightedPrefix(c.get('caller'), prefix)
      if (scope === undefined) return json({ data: [], nextCursor: null })
      const most = recent === 'true' ? Math.min(limit, MAX_RECENT) : limit
      const page = await belfry.schedules.list({ ...filters, ...after(cursor), limit: most, prefix: scope, look: LOOK })
      const list = toList(page, toScheduleResource)
      if (recent !== 'true') return json(list)
      const runs = await inTurns(page.items, ({ id }) => belfry.schedules.recent(id))
      const data: object[] = list.data.map((schedule, at) => ({ ...schedule, recent: toRecent(runs[at]) }))
      return json({ ...list, data })
    },
  })
}

function createSchedule(belfry: Belfry): Route {
  return route({
    ...{ method: 'post', path: '/v1/schedules', id: 'createSchedule', tag: TAG, role: 'operator', idempotent: true },
    summary: 'Makes a schedule; without an id it is given one.',
    body: newSchedule,
    libraryFirst: isForLibrary,
    answers: {
      201: { ...one('It was made.'), headers: { ...VERSIONED, Location: 'Where it is.' } },
    },
    handle: async (c, { body }) => {
      const caller = c.get('caller')
      const made = uniqueName(c)
      const isNamed = body.id !== undefined || made !== undefined
      const schedule = isNamed
        ? await createNamed(belfry, caller, body, made)
        : await belfry.schedules.add(body, caller.prefix === undefined ? {} : { prefix: caller.prefix })
      const { id } = schedule
      await c.env.audit(caller, 'schedule.put', id, CREATED)
      return answer(schedule, 201, { location: `${c.req.path}/${encodeURIComponent(id)}` })
    },
  })
}

/** Under the id that was given, or under the name that the same request always gets. */
async function createNamed(
  belfry: Belfry,
  caller: Caller,
  { id: given, ...input }: z.output<typeof newSchedule>,
  made: string | undefined,
): Promise<ScheduleView> {
  const id = given ?? `${caller.prefix ?? ''}${made}`
  mayMake(caller, id)
  try {
    return await belfry.schedules.put(id, input, { ifVersion: 0 })
  } catch (error) {
    if (!(error instanceof BelfryError) || error.code !== 'VERSION_CONFLICT') throw error
    // An earlier try of this very request made it, and was cut off before it could say so.
    const isOwn = made !== undefined && (given === undefined || (await isThere(belfry, id, input)))
    const own = isOwn ? await belfry.schedules.get(id) : undefined
    if (own !== undefined) return own
    throw problem(409, 'SCHEDULE_DUPLICATE', `there is a schedule "${id}" already`, {
      hint: 'PUT /v1/schedules/{id} replaces it',
    })
  }
}

/** Whether there is a schedule that is equal to this one. */
async function isThere(belfry: Belfry, id: string, input: ScheduleInput): Promise<boolean> {
  const { changes } = await belfry.schedules.apply({ [id]: input }, { dryRun: true })
  return changes.length === 0
}

function getSchedule(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/schedules/{id}', id: 'getSchedule', tag: TAG, role: 'viewer' },
    summary: 'One schedule.',
    answers: { 200: one('The schedule.') },
    handle: async (c) => {
      const id = sightedId(c)
      const schedule = await belfry.schedules.get(id)
      if (schedule === undefined) throw noSchedule(id)
      return answer(schedule)
    },
  })
}

function writeRoutes(belfry: Belfry): readonly Route[] {
  const path = '/v1/schedules/{id}'
  return [
    route({
      ...{ method: 'put', path, id: 'putSchedule', tag: TAG, role: 'operator' },
      summary: 'Makes or replaces a schedule. Equal to what is there, it changes nothing.',
      body: scheduleInput,
      libraryFirst: isForLibrary,
      headers: { ...IF_MATCH, 'If-None-Match': '"*": only if there is none yet.' },
      answers: { 200: one('It was there.'), 201: one('It was made.') },
      handle: async (c, { body }) => {
        const id = idParam(c)
        mayMake(c.get('caller'), id)
        checkId(id)
        const written = await conditionally(c, belfry, id, (options) => belfry.schedules.put(id, body, options))
        return answerWritten(c, 'schedule.put', written)
      },
    }),
    route({
      ...{ method: 'patch', path, id: 'patchSchedule', tag: TAG, role: 'operator' },
      summary: 'Changes some fields of a schedule; null takes one away.',
      body: schedulePatch,
      headers: IF_MATCH,
      answers: { 200: one('As it is now.') },
      handle: async (c, { body }) => {
        const id = sightedId(c)
        const written = await conditionally(c, belfry, id, (options) => belfry.schedules.patch(id, body, options))
        return answerWritten(c, 'schedule.patch', written)
      },
    }),
    route({
      ...{ method: 'delete', path, id: 'removeSchedule', tag: TAG, role: 'operator' },
      summary: 'Removes a schedule. Running work goes on; what never started is skipped.',
      headers: IF_MATCH,
      answers: { 204: { description: 'It is gone.' } },
      handle: async (c) => {
        const id = sightedId(c)
        const removed = await conditionally(c, belfry, id, (options) => belfry.schedules.remove(id, options))
        if (!removed) throw noSchedule(id)
        await c.env.audit(c.get('caller'), 'schedule.remove', id)
        return noContent()
      },
    }),
  ]
}

async function answerWritten(c: ServerContext, action: string, schedule: PutOutcome): Promise<Reply> {
  const { outcome } = schedule
  if (outcome !== 'unchanged') {
    await c.env.audit(c.get('caller'), action, schedule.id, { outcome, version: schedule.version })
  }
  return answer(schedule, outcome === 'created' ? 201 : 200)
}

export function answer(schedule: ScheduleView, status = 200, headers: ReplyHeaders = {}): Reply {
  return json(toScheduleResource(schedule), status, Object.assign({ etag: etag(schedule.version) }, headers))
}

export function noSchedule(id: string) {
  return problem(404, 'SCHEDULE_NOT_FOUND', `there is no schedule "${id}"`)
}

function idParam(c: ServerContext): string {
  return c.req.param('id') ?? ''
}

/** Names that no path can carry, and names that the library refuses. */
function checkId(id: string): void {
  const checked = scheduleId.safeParse(id)
  if (checked.success) return
  const message = checked.error.issues[0]?.message ?? 'it is not allowed'
  throw problem(422, 'NAME_INVALID', message, { errors: [{ pointer: 'id', message }] })
}
