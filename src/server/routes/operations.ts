/** /v1/operations: long work, its progress, and its end on request. */
import type { z } from 'zod'
import type { ManyRunsResult } from '../../api/runs/change-many.js'
import type { Belfry } from '../../belfry.js'
import { systemClock } from '../../core/clock.js'
import { BelfryError } from '../../core/errors.js'
import { breather, inTurns } from '../../core/in-turns.js'
import { problem } from '../http/problem.js'
import { json, type Reply } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import type { Operations, Started, Step } from '../operations/operations.js'
import type { StoredOperation } from '../operations/stored-operation.js'
import type { Caller } from '../security/caller.js'
import { isVisible, visiblePrefix } from '../security/visibility.js'
import { LOOK } from '../shapes/list.js'
import { newOperation, operationResource, toOperationResource } from '../shapes/operation.js'
import { noFields } from '../shapes/requests.js'
import { type ChosenQuery, retryWithin, visibleQuery } from './runs.js'

const TAG = 'operations'
const PATH = '/v1/operations/{id}'
const BATCH = 200
/** A request whose operation ends within this time is answered with its end. */
const AT_ONCE_MS = 1_000

export const accepted = {
  description: 'The operation goes on: ask for it at the Location.',
  schema: operationResource,
  headers: { Location: 'The path of the operation.' },
  links: { get: { operationId: 'getOperation', parameters: { id: '$response.body#/id' } } },
}

export function operationRoutes(belfry: Belfry, operations: Operations): readonly Route[] {
  return [
    route({
      ...{ method: 'post', path: '/v1/operations', id: 'startOperation', tag: TAG, role: 'operator', idempotent: true },
      summary: 'Cancels or retries all runs that match, or pauses or resumes all schedules under a prefix.',
      body: newOperation,
      answers: { 202: accepted },
      handle: async (c, { body }) => {
        const work = workOf(belfry, c, body)
        const target = 'prefix' in body ? body.prefix : '*'
        const started = await operations.start(c, { kind: body.kind, target }, work, (last) =>
          audit(c, last, 'note' in body ? body.note : undefined),
        )
        return answerAccepted(c, started.operation)
      },
    }),
    route({
      ...{ method: 'get', path: PATH, id: 'getOperation', tag: TAG, role: 'viewer' },
      summary: 'An operation: whether it goes on, and how much it has done. Known for seven days.',
      answers: { 200: { description: 'The operation.', schema: operationResource } },
      handle: async (c) => json(toOperationResource(await seenOperation(c, operations))),
    }),
    route({
      ...{
        method: 'post',
        path: `${PATH}/cancel`,
        id: 'cancelOperation',
        tag: TAG,
        role: 'operator',
        idempotent: true,
      },
      summary: 'Ends an operation within about a second. What it has done stays done.',
      body: noFields,
      optionalBody: true,
      answers: { 202: accepted },
      handle: async (c) => {
        const operation = await seenOperation(c, operations)
        if (operation.state === 'running') await operations.cancel(operation.id)
        return answerAccepted(c, operation)
      },
    }),
  ]
}

/** The end of the operation if it comes soon; undefined if the operation goes on. */
export function soon({ ended }: Started): Promise<StoredOperation | undefined> {
  return new Promise((resolve, reject) => {
    const stop = systemClock.after(AT_ONCE_MS, () => resolve(undefined))
    ended.finally(stop).then(resolve, reject)
  })
}

export function answerAccepted(c: ServerContext, operation: StoredOperation): Reply {
  return json(toOperationResource(operation), 202, { location: `${c.env.basePath}/v1/operations/${operation.id}` })
}

async function seenOperation(c: ServerContext, operations: Operations): Promise<StoredOperation> {
  const id = c.req.param('id') ?? ''
  const operation = await operations.get(id)
  if (operation !== undefined && isVisible(c.get('caller'), 'operation', operation)) return operation
  throw problem(404, 'NOT_FOUND', `there is no operation "${id.slice(0, 100)}": it never existed, or is too old`)
}

async function audit(
  c: ServerContext,
  { kind, target, state, counts }: StoredOperation,
  note: string | undefined,
): Promise<void> {
  await c.env.audit(c.get('caller'), `operation.${kind}`, target === '' ? '*' : target, {
    state,
    counts: { ...counts },
    ...(note === undefined ? {} : { note }),
  })
}

type Asked = z.output<typeof newOperation>

function workOf(belfry: Belfry, c: ServerContext, asked: Asked): (step: Step) => Promise<void> {
  return (step) =>
    'prefix' in asked ? changeSchedules(belfry, c.get('caller'), asked, step) : changeRuns(belfry, c, asked, step)
}

async function changeRuns(
  belfry: Belfry,
  c: ServerContext,
  { kind, ...query }: Extract<Asked, { kind: `${string}-runs` }>,
  { signal, add }: Step,
): Promise<void> {
  const breathe = breather()
  let after: { readonly after?: string } | undefined = {}
  while (after !== undefined) {
    await breathe()
    signal.throwIfAborted()
    const wanted: ChosenQuery | undefined = visibleQuery(c.get('caller'), { ...query, ...after, limit: BATCH })
    if (wanted === undefined) return
    const { changed, refused, next }: ManyRunsResult =
      kind === 'cancel-runs' ? await belfry.runs.cancelMany(wanted) : await retryWithin(belfry, c, wanted)
    add({ changed: changed.length, refused })
    after = next === undefined ? undefined : { after: next }
  }
}

async function changeSchedules(
  belfry: Belfry,
  caller: Caller,
  { kind, prefix, note }: Extract<Asked, { kind: `${string}-schedules` }>,
  { signal, add }: Step,
): Promise<void> {
  const scope = visiblePrefix(caller, prefix)
  if (scope === undefined) return
  const pauses = kind === 'pause-schedules'
  const change = async (id: string) => {
    try {
      await (pauses ? belfry.schedules.pause(id, note) : belfry.schedules.resume(id))
      add({ changed: 1 })
    } catch (error) {
      // Another caller has removed it.
      if (!(error instanceof BelfryError) || error.code !== 'SCHEDULE_NOT_FOUND') throw error
    }
  }
  const breathe = breather()
  let after: { readonly after?: string } | undefined = {}
  while (after !== undefined) {
    await breathe()
    signal.throwIfAborted()
    const state = pauses ? 'active' : 'paused'
    const { items, next } = await belfry.schedules.list({ prefix: scope, state, limit: BATCH, look: LOOK, ...after })
    await inTurns(items, ({ id }) => change(id))
    after = next === undefined ? undefined : { after: next }
  }
}
