import { z } from 'zod'
import type { ManyRunsResult } from '../../api/runs/change-many.js'
import { readRunLog } from '../../api/runs/run-log.js'
import type { Belfry } from '../../belfry.js'
import { ownerOf, type Run } from '../../core/runs/run.js'
import type { RunQuery } from '../../core/store.js'
import { instantMs } from '../../time/instant.js'
import { problem } from '../http/problem.js'
import { json, type Reply } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import { type Place, sizedPage } from '../http/sized-page.js'
import type { Caller } from '../security/caller.js'
import { afterCursor, nextCursor } from '../security/cursors.js'
import { mayUse, mustUse } from '../security/targets.js'
import { isVisible, type Visible, visible } from '../security/visibility.js'
import type { ParsedServerOptions } from '../server-options.js'
import { instantParameter, runState } from '../shapes/fields.js'
import { LOOK, listOf, paging } from '../shapes/list.js'
import { cancelledRuns, noFields, retriedRuns, runFilters } from '../shapes/requests.js'
import { cancelOutcome, manyRuns, runLog, runResource, toRunResource } from '../shapes/run.js'

const TAG = 'runs'
const MAX_CHANGED = 1_000

const listQuery = z.strictObject({
  ...runFilters,
  state: z.string().exactOptional().meta({ description: 'One state, or several separated by commas.' }),
  tick: instantParameter.exactOptional(),
  ...paging,
})

export function runRoutes(belfry: Belfry, { limits }: ParsedServerOptions): readonly Route[] {
  return [...readRoutes(belfry), ...changeRoutes(belfry), ...manyRoutes(belfry, limits.batch)]
}

function readRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      ...{ method: 'get', path: '/v1/runs', id: 'listRuns', tag: TAG, role: 'viewer' },
      summary: 'Runs, newest first. A page may be shorter than its limit; only `nextCursor` says that it is the last.',
      query: listQuery,
      answers: { 200: { description: 'A page.', schema: listOf(runResource, 'RunList') } },
      handle: async (c, { query: { cursor, state, tick, limit, ...filters } }) => {
        const caller = c.get('caller')
        const query = {
          ...filters,
          ...(state === undefined ? {} : { state: statesOf(state) }),
          ...(tick === undefined ? {} : { tick: instantMs(tick) }),
        }
        const read = async (place: Place) => {
          const wanted = visibleQuery(caller, { ...query, ...place })
          const page = wanted === undefined ? { items: [] } : await belfry.runs.list(wanted)
          return { ...page, items: visible(caller, 'run', page.items) }
        }
        return sizedPage(c, 'listRuns', { limit, cursor }, read, (run) => toRunResource(run, caller))
      },
    }),
    route({
      ...{ method: 'get', path: '/v1/runs/{id}', id: 'getRun', tag: TAG, role: 'viewer' },
      summary: 'One run.',
      answers: { 200: { description: 'The run.', schema: runResource } },
      handle: async (c) => json(toRunResource(await seenRun(belfry, c), c.get('caller'))),
    }),
    route({
      ...{ method: 'get', path: '/v1/runs/{id}/log', id: 'getRunLog', tag: TAG, role: 'viewer' },
      summary: 'The captured output of a run. Only `belfry crontab` captures output.',
      answers: { 200: { description: 'The output of its latest attempt.', schema: runLog } },
      handle: async (c) => {
        const { id } = await seenRun(belfry, c)
        const log = await readRunLog(belfry.records, id)
        if (log === undefined) throw problem(404, 'NOT_FOUND', `run ${id} has no log`)
        return json(log)
      },
    }),
  ]
}

function changeRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      ...{
        method: 'post',
        path: '/v1/runs/{id}/cancel',
        id: 'cancelRun',
        tag: TAG,
        role: 'operator',
        idempotent: true,
      },
      summary: 'Cancels a run that has not started; asks a running one to stop.',
      body: noFields,
      optionalBody: true,
      answers: {
        200: {
          description: 'The outcome.',
          schema: cancelOutcome,
        },
      },
      handle: async (c) => {
        const run = await seenRun(belfry, c)
        const { id } = run
        const outcome = await belfry.runs.cancel(id)
        await c.env.audit(c.get('caller'), 'run.cancel', id, { outcome, of: ownerOf(run) })
        return json({ outcome })
      },
    }),
    route({
      ...{ method: 'post', path: '/v1/runs/{id}/retry', id: 'retryRun', tag: TAG, role: 'operator', idempotent: true },
      summary: 'Runs a failed, cancelled or skipped run again.',
      body: noFields,
      optionalBody: true,
      answers: { 200: { description: 'The run now.', schema: runResource } },
      handle: async (c) => {
        const before = await seenRun(belfry, c)
        mustUse(c.get('caller'), before.target)
        await c.env.usage.within(c.get('caller'), 'runs', 1, () => belfry.runs.retry(before.id))
        await c.env.audit(c.get('caller'), 'run.retry', before.id, { of: ownerOf(before) })
        return json(toRunResource(await seenRun(belfry, c).catch(() => before), c.get('caller')))
      },
    }),
  ]
}

function manyRoutes(belfry: Belfry, most: number): readonly Route[] {
  const answers = { 200: { description: 'The runs that were changed.', schema: manyRuns } }
  const parts = { method: 'post', tag: TAG, role: 'operator', answers, idempotent: true } as const
  return [
    route({
      ...{ ...parts, path: '/v1/runs:cancel', id: 'cancelRuns', body: cancelledRuns },
      summary: 'Cancels the runs that match and have not ended, newest first, up to the limit.',
      handle: (c, { body }) =>
        changeMany(c, 'cancelRuns', withLimit(body, most), (query) => belfry.runs.cancelMany(query)),
    }),
    route({
      ...{ ...parts, path: '/v1/runs:retry', id: 'retryRuns', body: retriedRuns },
      summary: 'Retries the runs that match and failed, were cancelled or skipped, newest first, up to the limit.',
      handle: (c, { body }) =>
        changeMany(c, 'retryRuns', withLimit(body, most), (query) => retryWithin(belfry, c, query)),
    }),
  ]
}

/** Retries as many runs as the caller's quota of unfinished runs has room for. */
export async function retryWithin(belfry: Belfry, c: ServerContext, query: ChosenQuery): Promise<ManyRunsResult> {
  const caller = c.get('caller')
  const places = await c.env.usage.reserve(caller, 'runs', query.limit)
  let made = places.granted
  try {
    if (places.granted === 0) throw places.refusal()
    const limit = Math.min(query.limit, places.granted)
    const result = await belfry.runs.retryMany({ ...query, limit }, ({ target }) => mayUse(caller, target))
    made = result.changed.length
    return result
  } finally {
    places.end(made)
  }
}

type Selection = z.output<typeof cancelledRuns | typeof retriedRuns>

/** A query of `visibleQuery` that says whether it means every run. */
export type ChosenQuery = RunQuery & { readonly all?: boolean }

/** Refuses a limit above `most`, the service's own. */
function withLimit({ limit, ...selection }: Selection, most: number): Selection & { readonly limit: number } {
  if (limit === undefined || limit <= most) return { ...selection, limit: limit ?? Math.min(most, MAX_CHANGED) }
  throw problem(413, 'BATCH_TOO_LARGE', `${limit} runs are too many at once: at most ${most}`, {
    hint: 'send the rest with nextCursor',
  })
}

const BULK_ACTIONS = { cancelRuns: 'run.cancel', retryRuns: 'run.retry' } as const

async function changeMany(
  c: ServerContext,
  list: keyof typeof BULK_ACTIONS,
  { cursor, ...query }: Selection & { readonly limit: number },
  change: (query: ChosenQuery) => Promise<ManyRunsResult>,
): Promise<Reply> {
  const caller = c.get('caller')
  const wanted = visibleQuery(caller, { ...query, ...(await afterCursor(c, list, cursor, '/cursor')) })
  if (wanted === undefined) return json({ changed: [], refused: 0, nextCursor: null })
  const { changed, refused, next } = await change(wanted)
  if (changed.length > 0) {
    await c.env.audit(caller, BULK_ACTIONS[list], query.schedule ?? query.job ?? query.to ?? '*', {
      ...query,
      changed: changed.length,
    })
  }
  return json({ changed, refused, nextCursor: await nextCursor(c, list, next) })
}

async function seenRun(belfry: Belfry, c: ServerContext): Promise<Visible<Run>> {
  const id = c.req.param('id') ?? ''
  const run = await belfry.runs.get(id)
  if (run !== undefined && isVisible(c.get('caller'), 'run', run)) return run
  throw problem(404, 'RUN_NOT_FOUND', `there is no run "${id.slice(0, 100)}": it never existed, or was pruned`)
}

/** The query with what the caller may see; undefined when that is nothing. The page then ends where visible runs do. */
export function visibleQuery<Query extends RunQuery>(caller: Caller, query: Query): Query | undefined {
  const { prefix } = caller
  if (prefix === undefined) return { ...query, look: LOOK }
  const { schedule } = query
  if (schedule === undefined) return { ...query, prefix, look: LOOK }
  return isVisible(caller, 'schedule', { id: schedule }) ? { ...query, look: LOOK } : undefined
}

const states = z.array(runState)

function statesOf(text: string): z.output<typeof states> {
  const checked = states.safeParse(text.split(','))
  if (checked.success) return checked.data
  const message = `it is one of ${runState.options.join(', ')}, or several separated by commas`
  throw problem(400, 'REQUEST_INVALID', `state: ${message}`, { errors: [{ pointer: 'state', message }] })
}
