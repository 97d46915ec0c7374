import { z } from 'zod'
import type { ManyRunsResult } from '../../api/runs/change-many.js'
import { readRunLog } from '../../api/runs/run-log.js'
import type { Belfry } from '../../belfry.js'
import type { Run } from '../../core/run.js'
import type { Page, RunQuery } from '../../core/store.js'
import { instantMs } from '../../time/instant.js'
import { problem } from '../http/problem.js'
import { json, type Reply } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import type { Caller } from '../security/caller.js'
import { maySeeRun } from '../security/visibility.js'
import type { ParsedServerOptions } from '../server-options.js'
import { manyRuns, runLog } from '../shapes/answers.js'
import { instant, runState } from '../shapes/fields.js'
import { after, cursorOf, LOOK, listOf, paging, toList } from '../shapes/list.js'
import { meantRuns, runFilters } from '../shapes/requests.js'
import { runResource, toRunResource } from '../shapes/run.js'

const TAG = 'runs'
/** How many looks a page may take for a caller who sees few of the runs. */
const MAX_LOOKS = 10
const MAX_CHANGED = 1_000

const listQuery = z.strictObject({
  ...runFilters,
  state: z.string().exactOptional().meta({ description: 'One state, or several with commas between.' }),
  tick: instant.exactOptional(),
  ...paging,
})

export function runRoutes(belfry: Belfry, { limits }: ParsedServerOptions): readonly Route[] {
  return [...lookRoutes(belfry), ...changeRoutes(belfry), ...manyRoutes(belfry, limits.batch)]
}

function lookRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      ...{ method: 'get', path: '/v1/runs', id: 'listRuns', tag: TAG, role: 'viewer' },
      summary: 'Runs, newest first. A page may be shorter than its limit; only `nextCursor` says that it is the last.',
      query: listQuery,
      answers: { 200: { description: 'A page.', schema: listOf(runResource) } },
      handle: async (c, { query: { cursor, state, tick, limit, ...filters } }) => {
        const page = await seenRuns(belfry, c.get('caller'), {
          ...{ ...filters, limit, ...after(cursor) },
          ...(state === undefined ? {} : { states: statesOf(state) }),
          ...(tick === undefined ? {} : { tick: tickOf(tick) }),
        })
        return json(toList(page, (run) => toRunResource(run, c.get('caller'))))
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
      summary: 'What a run has said, where its output is kept: that of `belfry crontab` is.',
      answers: { 200: { description: 'The log of its newest attempt.', schema: runLog } },
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
      ...{ method: 'post', path: '/v1/runs/{id}/cancel', id: 'cancelRun', tag: TAG, role: 'operator' },
      summary: 'Cancels a run that has not started; asks a running one to end.',
      body: z.strictObject({}),
      optionalBody: true,
      answers: {
        200: {
          description: 'What became of it.',
          schema: z.strictObject({ outcome: z.enum(['cancelled', 'requested', 'finished']) }),
        },
      },
      handle: async (c) => {
        const { id } = await seenRun(belfry, c)
        const outcome = await belfry.runs.cancel(id)
        await c.env.audit(c.get('caller'), 'run.cancel', id, { outcome })
        return json({ outcome })
      },
    }),
    route({
      ...{ method: 'post', path: '/v1/runs/{id}/retry', id: 'retryRun', tag: TAG, role: 'operator' },
      summary: 'Runs a failed, cancelled or skipped run again.',
      body: z.strictObject({}),
      optionalBody: true,
      answers: { 200: { description: 'The run, as it is now.', schema: runResource } },
      handle: async (c) => {
        const before = await seenRun(belfry, c)
        await belfry.runs.retry(before.id)
        await c.env.audit(c.get('caller'), 'run.retry', before.id)
        return json(toRunResource((await belfry.runs.get(before.id)) ?? before, c.get('caller')))
      },
    }),
  ]
}

function manyRoutes(belfry: Belfry, most: number): readonly Route[] {
  const answers = { 200: { description: 'What was done.', schema: manyRuns } }
  const parts = { method: 'post', tag: TAG, role: 'operator', body: meantRuns, answers } as const
  return [
    route({
      ...{ ...parts, path: '/v1/runs:cancel', id: 'cancelRuns' },
      summary: 'Cancels the runs that match and have not ended, newest first, up to the limit.',
      handle: (c, { body }) =>
        changeMany(c, within(body, most), 'run.cancel', (...them) => belfry.runs.cancelMany(...them)),
    }),
    route({
      ...{ ...parts, path: '/v1/runs:retry', id: 'retryRuns' },
      summary: 'Retries the runs that match and failed, were cancelled or skipped, newest first, up to the limit.',
      handle: (c, { body }) =>
        changeMany(c, within(body, most), 'run.retry', (...them) => belfry.runs.retryMany(...them)),
    }),
  ]
}

type Meant = z.output<typeof meantRuns>

/** No more at once than the service allows. */
function within({ limit, ...meant }: Meant, most: number): Meant & { readonly limit: number } {
  if (limit === undefined || limit <= most) return { ...meant, limit: limit ?? Math.min(most, MAX_CHANGED) }
  throw problem(413, 'BATCH_TOO_LARGE', `${limit} runs are too many at once: at most ${most}`, {
    hint: 'go on with nextCursor',
  })
}

async function changeMany(
  c: ServerContext,
  { cursor, ...query }: Meant & { readonly limit: number },
  action: string,
  change: (query: RunQuery, isMeant: (run: Run) => boolean) => Promise<ManyRunsResult>,
): Promise<Reply> {
  const caller = c.get('caller')
  const result = await change({ ...query, ...after(cursor), look: LOOK }, (run) => maySeeRun(caller, run))
  const { changed, refused, next } = result
  if (changed.length > 0) {
    await c.env.audit(caller, action, query.schedule ?? query.job ?? query.sink ?? '*', {
      ...query,
      changed: changed.length,
    })
  }
  return json({ changed, refused, nextCursor: cursorOf(next) })
}

async function seenRun(belfry: Belfry, c: ServerContext): Promise<Run> {
  const id = c.req.param('id') ?? ''
  const run = await belfry.runs.get(id)
  if (run !== undefined && maySeeRun(c.get('caller'), run)) return run
  throw problem(404, 'RUN_NOT_FOUND', `there is no run "${id.slice(0, 100)}": it never was, or its history is gone`)
}

/** Those that the caller may see. Runs have no common prefix to look for: what others have is passed over. */
async function seenRuns(belfry: Belfry, caller: Caller, query: RunQuery): Promise<Page<Run>> {
  if (caller.prefix === undefined) return belfry.runs.list({ ...query, look: LOOK })
  const items: Run[] = []
  let place: { readonly after?: string } = query.after === undefined ? {} : { after: query.after }
  for (let look = 0; look < MAX_LOOKS && items.length < query.limit; look += 1) {
    const page = await belfry.runs.list({
      ...query,
      ...place,
      limit: query.limit - items.length,
      look: LOOK / MAX_LOOKS,
    })
    items.push(...page.items.filter((run) => maySeeRun(caller, run)))
    if (page.next === undefined) return { items }
    place = { after: page.next }
  }
  return place.after === undefined ? { items } : { items, next: place.after }
}

const states = z.array(runState)

function statesOf(text: string): z.output<typeof states> {
  const checked = states.safeParse(text.split(','))
  if (checked.success) return checked.data
  const message = `it is one of ${runState.options.join(', ')}, or several with commas between`
  throw problem(400, 'REQUEST_INVALID', `state: ${message}`, { errors: [{ pointer: 'state', message }] })
}

function tickOf(given: string | number): number {
  return instantMs(given)
}
