import { z } from 'zod'
import type { Belfry } from '../../belfry.js'
import { DEFAULTS } from '../../core/defaults.js'
import { BelfryError } from '../../core/errors.js'
import type { Run } from '../../core/runs/run.js'
import type { EnqueueResult } from '../../core/store.js'
import { durationMs } from '../../time/duration.js'
import { instantMs } from '../../time/instant.js'
import { json, type Reply } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import { whileConnected } from '../http/while-connected.js'
import type { Operations, Step } from '../operations/operations.js'
import type { StoredOperation } from '../operations/stored-operation.js'
import type { Caller } from '../security/caller.js'
import { isRestricted, mustUse } from '../security/targets.js'
import { isVisible, seesAll, visibleId } from '../security/visibility.js'
import { digits, instantParameter, iso } from '../shapes/fields.js'
import { backfill, noteRequest, trigger } from '../shapes/requests.js'
import { enqueued, enqueuedLinks, type RunResource, toRunResource } from '../shapes/run.js'
import { scheduleResource } from '../shapes/schedule.js'
import { backfilled, explanation, ticks } from '../shapes/schedule-answers.js'
import { accepted, answerAccepted, soon } from './operations.js'
import { answer } from './schedules.js'

const TAG = 'schedules'
const BASE = '/v1/schedules/{id}'
const MAX_LISTED = 1_000
/** How many ticks of a backfill are counted at a time. */
const PREVIEWED = 1_000

const schedule = { description: 'The schedule.', schema: scheduleResource, headers: { ETag: 'The version.' } }

export function scheduleActionRoutes(belfry: Belfry, operations: Operations): readonly Route[] {
  return [...pauseRoutes(belfry), triggerRoute(belfry), backfillRoute(belfry, operations), ...tickRoutes(belfry)]
}

function pauseRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      ...{ method: 'post', path: `${BASE}/pause`, id: 'pauseSchedule', tag: TAG, role: 'operator', idempotent: true },
      summary: 'Pauses a schedule until it is resumed.',
      body: noteRequest,
      optionalBody: true,
      answers: { 200: schedule },
      handle: async (c, { body }) => {
        const id = visibleId(c)
        const paused = await belfry.schedules.pause(id, body.note)
        await c.env.audit(c.get('caller'), 'schedule.pause', id, body)
        return answer(c, paused)
      },
    }),
    route({
      ...{ method: 'post', path: `${BASE}/resume`, id: 'resumeSchedule', tag: TAG, role: 'operator', idempotent: true },
      summary: 'Resumes a paused schedule. The note goes to the audit trail.',
      body: noteRequest,
      optionalBody: true,
      answers: { 200: schedule },
      handle: async (c, { body }) => {
        const id = visibleId(c)
        const resumed = await belfry.schedules.resume(id)
        await c.env.audit(c.get('caller'), 'schedule.resume', id, body)
        return answer(c, resumed)
      },
    }),
  ]
}

function triggerRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'post', path: `${BASE}/trigger`, id: 'triggerSchedule', tag: TAG, role: 'operator', idempotent: true },
    summary: 'Runs a schedule now, besides its timeline.',
    body: trigger,
    optionalBody: true,
    answers: {
      200: { description: 'The run has ended.', schema: enqueued, links: enqueuedLinks },
      202: { description: 'The run has not ended.', schema: enqueued, links: enqueuedLinks },
    },
    handle: async (c, { body: { wait, ...options }, repeatable }) => {
      const id = visibleId(c)
      const waitMs = durationMs(wait ?? 0)
      await mustUseTargetOf(belfry, c, id)
      const trigger = () => belfry.schedules.trigger(id, { ...options, ...repeatable?.dedupe })
      const result = await c.env.usage.within(c.get('caller'), 'runs', 1, trigger, isEnqueued)
      await c.env.audit(c.get('caller'), 'schedule.trigger', id, enqueueDetail(result))
      return answerEnqueued(belfry, c, result, waitMs, repeatable?.dedupe.key)
    },
  })
}

/**
 * The answer to a trigger or an enqueue. When a request is repeated with its Idempotency-Key, the store reports the run of the
 * first request as a duplicate; the answer still says `enqueued`, like the first one. A run that refused this one, by its key
 * or as a duplicate, is only named to callers who may see it.
 */
export async function answerEnqueued(
  belfry: Belfry,
  c: ServerContext,
  { outcome, run: runId }: EnqueueResult,
  waitMs: number,
  dedupe: string | undefined,
): Promise<Reply> {
  const caller = c.get('caller')
  const run =
    outcome === 'enqueued' && waitMs > 0 ? await waitForEnd(belfry, c, runId, waitMs) : await belfry.runs.get(runId)
  const shown = run !== undefined && isVisible(caller, 'run', run) ? run : undefined
  const mayKnow = outcome === 'enqueued' || shown !== undefined || seesAll(caller)
  const isOwn = outcome === 'duplicate' && dedupe !== undefined && shown?.dedupe === dedupe
  const ended = waitMs > 0 && mayKnow && (run === undefined || run.finishedAt !== undefined)
  const body = {
    outcome: isOwn ? 'enqueued' : outcome,
    runId: mayKnow ? runId : null,
    run: shown === undefined ? null : toRunResource(shown, caller),
  }
  return json(body, ended ? 200 : 202)
}

export function isEnqueued({ outcome }: Pick<EnqueueResult, 'outcome'>): number {
  return outcome === 'enqueued' ? 1 : 0
}

/** For the audit trail: names the run only if this request made it. */
export function enqueueDetail({ outcome, run }: EnqueueResult) {
  return outcome === 'enqueued' ? { outcome, run } : { outcome }
}

/** A schedule that another caller has made may name a job or a sink that this caller may not use. */
async function mustUseTargetOf(belfry: Belfry, c: ServerContext, id: string): Promise<void> {
  if (!isRestricted(c.get('caller'))) return
  const schedule = await belfry.schedules.get(id)
  if (schedule !== undefined) mustUse(c.get('caller'), schedule.definition.target)
}

/** Resolves to the run once it has ended, or once the wait is over. */
function waitForEnd(belfry: Belfry, c: ServerContext, run: string, waitMs: number): Promise<Run | undefined> {
  return whileConnected(c, async (signal) => {
    try {
      return await belfry.runs.wait(run, { timeout: waitMs, signal })
    } catch (error) {
      const isLate = error instanceof BelfryError && error.code === 'WAIT_TIMEOUT'
      if (!isLate && !signal.aborted) throw error
      return belfry.runs.get(run)
    }
  })
}

function backfillRoute(belfry: Belfry, operations: Operations): Route {
  return route({
    ...{
      method: 'post',
      path: `${BASE}/backfill`,
      id: 'backfillSchedule',
      tag: TAG,
      role: 'operator',
      idempotent: true,
    },
    summary: 'Enqueues a run for each tick of a past range, as an operation. A repetition adds nothing.',
    body: backfill,
    answers: { 200: { description: 'The runs are enqueued.', schema: backfilled }, 202: accepted },
    handle: async (c, { body }) => {
      const id = visibleId(c)
      await mustUseTargetOf(belfry, c, id)
      const wanted = await backfillPlaces(belfry, c.get('caller'), id, body)
      const runs: string[] = []
      let refused: unknown
      const work = async ({ signal, add }: Step) => {
        const onProgress = (outcomes: readonly EnqueueResult[]) => {
          for (const { outcome, run } of outcomes) {
            add({ [COUNTED[outcome]]: 1 })
            // A busy one names the run that kept it from being made, which may be another caller's.
            if (outcome !== 'busy' && runs.length < MAX_LISTED) runs.push(run)
          }
        }
        const enqueueAll = () => belfry.schedules.backfill(id, { ...body, signal, onProgress })
        await c.env.usage.within(c.get('caller'), 'runs', wanted, enqueueAll).catch((error: unknown) => {
          refused = error
          throw error
        })
      }
      const audit = async ({ state, counts }: StoredOperation) => {
        if (state !== 'failed') await c.env.audit(c.get('caller'), 'schedule.backfill', id, { ...body, ...counts })
      }
      const started = await operations.start(c, { kind: 'backfill', target: id }, work, audit)
      const ended = await soon(started)
      if (ended === undefined) return answerAccepted(c, started.operation)
      if (refused !== undefined) throw refused
      return json({ ...{ enqueued: 0, duplicates: 0, busy: 0 }, ...ended.counts, runs })
    },
  })
}

/** How many places of the caller's quota a backfill needs: one for each tick of its range. */
async function backfillPlaces(
  belfry: Belfry,
  { quota }: Caller,
  id: string,
  { from, to }: z.output<typeof backfill>,
): Promise<number> {
  if (quota?.runs === undefined) return 0
  const end = instantMs(to)
  let [found, start] = [0, instantMs(from)]
  // More than the quota are refused, however many they are.
  while (found <= quota.runs) {
    const ticks = await belfry.schedules.preview(id, { from: new Date(start), count: PREVIEWED })
    const within = ticks.filter(({ at }) => at.getTime() <= end)
    found += within.length
    const last = within.at(-1)
    if (last === undefined || within.length < PREVIEWED) break
    start = last.at.getTime() + 1
  }
  return found
}

/** The name of each outcome's count. */
const COUNTED = { enqueued: 'enqueued', duplicate: 'duplicates', busy: 'busy' } as const

function tickRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      ...{ method: 'get', path: `${BASE}/explain`, id: 'explainTick', tag: TAG, role: 'viewer', refuses: [422] },
      summary: 'Why a tick ran, was skipped, or has not run yet.',
      query: z.strictObject({
        at: instantParameter.exactOptional().meta({ description: 'Default: the newest past tick.' }),
      }),
      answers: { 200: { description: 'The answer.', schema: explanation } },
      handle: async (c, { query: { at } }) => {
        const {
          run,
          at: instant,
          ...rest
        } = await belfry.schedules.explain(visibleId(c), at, { names: seesAll(c.get('caller')) ? 'all' : 'own' })
        return json({ at: iso(instant), ...rest, ...shownRun(c.get('caller'), run) })
      },
    }),
    route({
      ...{ method: 'get', path: `${BASE}/ticks`, id: 'listTicks', tag: TAG, role: 'viewer', refuses: [422] },
      summary: 'The ticks of a time range: what the timeline has, and what happened.',
      query: z
        .strictObject({
          from: instantParameter,
          to: instantParameter,
          limit: digits(1, 1_000).default(DEFAULTS.list.limit),
        })
        .refine(({ from, to }) => instantMs(from) <= instantMs(to), {
          path: ['to'],
          error: 'it lies before `from`',
        }),
      answers: { 200: { description: 'In order of time.', schema: ticks } },
      handle: async (c, { query }) => {
        const id = visibleId(c)
        const found = await belfry.schedules.ticks(id, query)
        return json({
          data: found.ticks.map(({ at, run, ...rest }) => ({
            ...{ at: iso(at), ...rest },
            ...shownRun(c.get('caller'), run),
          })),
          skips: found.skips.map(({ from, to, count, reason }) => ({ from: iso(from), to: iso(to), count, reason })),
          next: found.next === undefined ? null : iso(found.next),
        })
      },
    }),
  ]
}

function shownRun(caller: Caller, run: Run | undefined): { readonly run?: RunResource } {
  return run !== undefined && isVisible(caller, 'run', run) ? { run: toRunResource(run, caller) } : {}
}
