import { z } from 'zod'
import type { Belfry } from '../../belfry.js'
import { BelfryError } from '../../core/errors.js'
import type { Run } from '../../core/run.js'
import { durationMs } from '../../time/duration.js'
import { SAME_FOR, uniqueName } from '../idempotency.js'
import { problem } from '../problem.js'
import { type Route, route, type ServerContext } from '../route.js'
import { duration, instant, iso, json, name, overlap, skipReason, time } from '../shapes/fields.js'
import { runResource, toRunResource } from '../shapes/run.js'
import { scheduleResource } from '../shapes/schedule.js'
import { sightedId } from '../sight.js'
import { answer, noSchedule } from './schedules.js'

const TAG = 'schedules'
const BASE = '/v1/schedules/{id}'
export const MAX_WAIT_MS = 60_000
const MAX_LISTED = 1_000

export const wait = duration.meta({ description: 'Wait this long for the end, at most a minute.' })

export const enqueued = z
  .strictObject({
    outcome: z.enum(['enqueued', 'duplicate', 'busy']),
    runId: z.string().meta({ description: 'The new run, or the one that it lost to.' }),
    run: z.nullable(runResource).meta({ description: 'As it is now; null where no history is kept.' }),
  })
  .meta({ id: 'Enqueued' })

const backfilled = z
  .strictObject({
    enqueued: z.int(),
    duplicates: z.int().meta({ description: 'Ticks that this backfill had run before.' }),
    busy: z.int(),
    runs: z.array(z.string()).meta({ description: `The first ${MAX_LISTED} runs.` }),
  })
  .meta({ id: 'Backfilled' })

const TICK_STATUSES = [
  'before-creation',
  'ran',
  'failed',
  'cancelled',
  'running',
  'waiting',
  'skipped',
  'upcoming',
  'due',
  'forgotten',
] as const

const explanation = z
  .strictObject({
    at: time,
    status: z.enum(['unknown-schedule', 'not-a-tick', ...TICK_STATUSES]),
    reason: skipReason.exactOptional(),
    text: z.string(),
    run: runResource.exactOptional(),
  })
  .meta({ id: 'Explanation' })

const ticks = z
  .strictObject({
    data: z.array(
      z
        .strictObject({
          at: time,
          planned: z.boolean().meta({ description: 'Whether the timeline as it is now has a tick there.' }),
          status: z.enum(TICK_STATUSES),
          reason: skipReason.exactOptional(),
          run: runResource.exactOptional(),
        })
        .meta({ id: 'Tick' }),
    ),
    skips: z
      .array(z.strictObject({ from: time, to: time, count: z.int(), reason: skipReason }))
      .meta({ description: 'Stretches of skipped ticks that touch the range.' }),
    next: z.nullable(time).meta({ description: 'Pass it as `from` to go on; null when that was all.' }),
  })
  .meta({ id: 'Ticks' })

const schedule = { description: 'The schedule.', schema: scheduleResource, headers: { ETag: 'The version.' } }

export function scheduleActionRoutes(belfry: Belfry): readonly Route[] {
  return [...pauseRoutes(belfry), triggerRoute(belfry), backfillRoute(belfry), ...lookRoutes(belfry)]
}

function pauseRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      ...{ method: 'post', path: `${BASE}/pause`, id: 'pauseSchedule', tag: TAG, role: 'operator' },
      summary: 'Stops firing until it is resumed.',
      body: z.strictObject({ note: z.string().max(2_000).exactOptional() }),
      optionalBody: true,
      answers: { 200: schedule },
      handle: async (c, { body: { note } }) => {
        const id = sightedId(c)
        const paused = await belfry.schedules.pause(id, note)
        await c.var.audit(c.var.caller, 'schedule.pause', id, note === undefined ? {} : { note })
        return answer(c, paused)
      },
    }),
    route({
      ...{ method: 'post', path: `${BASE}/resume`, id: 'resumeSchedule', tag: TAG, role: 'operator' },
      summary: 'Lets it fire again.',
      body: z.strictObject({}),
      optionalBody: true,
      answers: { 200: schedule },
      handle: async (c) => {
        const id = sightedId(c)
        const resumed = await belfry.schedules.resume(id)
        await c.var.audit(c.var.caller, 'schedule.resume', id)
        return answer(c, resumed)
      },
    }),
  ]
}

function triggerRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'post', path: `${BASE}/trigger`, id: 'triggerSchedule', tag: TAG, role: 'operator', idempotent: true },
    summary: 'Runs it now, beside its timeline.',
    body: z.strictObject({
      payload: json.exactOptional(),
      overlap: overlap.exactOptional(),
      wait: wait.exactOptional(),
    }),
    optionalBody: true,
    answers: {
      200: { description: 'It has ended.', schema: enqueued },
      202: { description: 'It has not ended yet.', schema: enqueued },
    },
    handle: async (c, { body: { wait, ...options } }) => {
      const id = sightedId(c)
      const waitMs = checkWait(wait)
      const made = uniqueName(c)
      const key = made === undefined ? {} : { key: made, keyFor: SAME_FOR }
      const result = await belfry.schedules.trigger(id, { ...options, ...key })
      await c.var.audit(c.var.caller, 'schedule.trigger', id, { ...result })
      return answerEnqueued(belfry, c, result, waitMs, made)
    },
  })
}

/** What a repeated request with an Idempotency-Key finds is its own run. */
export async function answerEnqueued(
  belfry: Belfry,
  c: ServerContext,
  { outcome, run: runId }: { readonly outcome: 'enqueued' | 'duplicate' | 'busy'; readonly run: string },
  waitMs: number,
  made: string | undefined,
): Promise<Response> {
  const run =
    outcome === 'enqueued' && waitMs > 0 ? await waited(belfry, c, runId, waitMs) : await belfry.runs.get(runId)
  const isOwn = outcome === 'duplicate' && made !== undefined && run?.dedupe === made
  const ended = waitMs > 0 && (run === undefined || run.finishedAt !== undefined)
  const body = { outcome: isOwn ? 'enqueued' : outcome, runId, run: run === undefined ? null : toRunResource(run) }
  return c.json(body, ended ? 200 : 202)
}

async function waited(belfry: Belfry, c: ServerContext, run: string, waitMs: number): Promise<Run | undefined> {
  try {
    return await belfry.runs.wait(run, { timeout: waitMs, signal: c.req.raw.signal })
  } catch (error) {
    const isLate = error instanceof BelfryError && error.code === 'WAIT_TIMEOUT'
    if (!isLate && !c.req.raw.signal.aborted) throw error
    return belfry.runs.get(run)
  }
}

export function checkWait(given: string | number | undefined): number {
  const waitMs = given === undefined ? 0 : durationMs(given)
  if (waitMs <= MAX_WAIT_MS) return waitMs
  const message = 'it is more than a minute: ask for the run later instead'
  throw problem(422, 'OPTION_INVALID', `wait: ${message}`, { errors: [{ pointer: '/wait', message }] })
}

function backfillRoute(belfry: Belfry): Route {
  return route({
    ...{
      method: 'post',
      path: `${BASE}/backfill`,
      id: 'backfillSchedule',
      tag: TAG,
      role: 'operator',
      idempotent: true,
    },
    summary: 'Runs the ticks of a past stretch of time again. Repeating it adds nothing.',
    body: z.strictObject({
      from: instant,
      to: instant,
      name: name('backfill name').exactOptional().meta({ description: 'Default the range itself.' }),
      overlap: overlap.exactOptional(),
    }),
    answers: { 202: { description: 'They are enqueued.', schema: backfilled } },
    handle: async (c, { body }) => {
      const id = sightedId(c)
      const { runs } = await belfry.schedules.backfill(id, body)
      const count = (outcome: string) => runs.filter((run) => run.outcome === outcome).length
      const counts = { enqueued: count('enqueued'), duplicates: count('duplicate'), busy: count('busy') }
      await c.var.audit(c.var.caller, 'schedule.backfill', id, { ...body, ...counts })
      return c.json({ ...counts, runs: runs.slice(0, MAX_LISTED).map(({ run }) => run) }, 202)
    },
  })
}

function lookRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      ...{ method: 'get', path: `${BASE}/explain`, id: 'explainTick', tag: TAG, role: 'viewer' },
      summary: 'Why a tick ran, was skipped, or has not happened yet.',
      query: z.strictObject({ at: instant }),
      answers: { 200: { description: 'The answer.', schema: explanation } },
      handle: async (c, { query: { at } }) => {
        const { run, at: instant, ...rest } = await belfry.schedules.explain(sightedId(c), at)
        return c.json({ at: iso(instant), ...rest, ...(run === undefined ? {} : { run: toRunResource(run) }) })
      },
    }),
    route({
      ...{ method: 'get', path: `${BASE}/ticks`, id: 'listTicks', tag: TAG, role: 'viewer' },
      summary: 'The ticks of a stretch of time: what the timeline has, and what happened.',
      query: z.strictObject({
        from: instant,
        to: instant,
        limit: z.coerce.number().int().min(1).max(1_000).default(100),
      }),
      answers: { 200: { description: 'In order of time.', schema: ticks } },
      handle: async (c, { query }) => {
        const id = sightedId(c)
        if ((await belfry.schedules.get(id)) === undefined) throw noSchedule(id)
        const found = await belfry.schedules.ticks(id, query)
        return c.json({
          data: found.ticks.map(({ at, run, ...rest }) => ({
            ...{ at: iso(at), ...rest },
            ...(run === undefined ? {} : { run: toRunResource(run) }),
          })),
          skips: found.skips.map(({ from, to, count, reason }) => ({ from: iso(from), to: iso(to), count, reason })),
          next: found.next === undefined ? null : iso(found.next),
        })
      },
    }),
  ]
}
