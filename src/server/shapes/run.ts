import { z } from 'zod'
import type { ErrorRecord } from '../../core/errors.js'
import { ORIGINS, type Run, type WaitsFor } from '../../core/runs/run.js'
import { ENQUEUE_OUTCOMES } from '../../core/store.js'
import type { Caller } from '../security/caller.js'
import type { Visible } from '../security/visibility.js'
import { iso, json, keep, runState, skipReason, time, whenBusy } from './fields.js'

const runError = z
  .strictObject({
    message: z.string(),
    code: z.string().exactOptional(),
    stack: z.string().exactOptional(),
    excerpt: z
      .string()
      .exactOptional()
      .meta({ description: 'The beginning of the receiver’s answer. Hidden from viewers.' }),
  })
  .meta({ id: 'RunError' })

export const runResource = z
  .strictObject({
    id: z.string(),
    state: runState,
    job: z.string().exactOptional(),
    to: z.string().exactOptional(),
    toOptions: json.exactOptional(),
    origin: z.enum(ORIGINS).meta({ id: 'RunOrigin' }),
    schedule: z.string().exactOptional(),
    tick: time.exactOptional().meta({ description: 'The nominal instant.' }),
    backfill: z.string().exactOptional(),
    payload: json,
    priority: z.int(),
    keep,
    key: z.strictObject({ name: z.string(), limit: z.int(), whenBusy }).meta({ id: 'RunKey' }).exactOptional(),
    dedupe: z.string().exactOptional().meta({ description: 'The deduplication key that it was enqueued with.' }),
    waitsFor: z
      .enum(['worker', 'overlap', 'key'])
      .meta({ id: 'WaitsFor' })
      .exactOptional()
      .meta({ description: 'A worker that knows the job; an earlier run of the schedule; or its exclusive key.' }),
    reason: skipReason.exactOptional(),
    createdAt: time,
    readyAt: time.meta({ description: 'When it may start, or be retried.' }),
    startBy: time.exactOptional(),
    attempt: z.int(),
    failures: z.int(),
    takeovers: z.int(),
    token: z.int().exactOptional().meta({ description: 'The fencing token of the latest attempt.' }),
    instance: z.string().exactOptional(),
    startedAt: time.exactOptional(),
    finishedAt: time.exactOptional(),
    cancelRequested: z.literal(true).exactOptional(),
    result: json.exactOptional(),
    error: runError.exactOptional(),
  })
  .meta({ id: 'Run' })

export type RunResource = z.output<typeof runResource>

/** Links of an answer to a request that made a run. */
export const enqueuedLinks = { get: { operationId: 'getRun', parameters: { id: '$response.body#/runId' } } }

export const enqueued = z
  .strictObject({
    outcome: z.enum(ENQUEUE_OUTCOMES).meta({ id: 'EnqueueOutcomeKind' }),
    runId: z.nullable(z.string()).meta({
      description:
        'The new run, or the run that it is a duplicate of, or that holds the key; null if the caller may not see that run.',
    }),
    run: z.nullable(runResource).meta({
      description: 'The run now; null if it has ended and its history is not kept, or if the caller may not see it.',
    }),
  })
  .meta({ id: 'EnqueueOutcome' })

export const cancelOutcome = z
  .strictObject({ outcome: z.enum(['cancelled', 'requested', 'finished']).meta({ id: 'CancelOutcomeKind' }) })
  .meta({ id: 'CancelOutcome' })

export const manyRuns = z
  .strictObject({
    changed: z.array(z.string()).meta({ description: 'The runs that were changed, or asked to cancel.' }),
    refused: z.int().meta({ description: 'Runs that changed state before they could be changed.' }),
    nextCursor: z.nullable(z.string()).meta({ description: 'Pass it as `cursor` for the next batch.' }),
  })
  .meta({ id: 'ManyRunsResult' })

export const runLog = z
  .strictObject({
    text: z.string(),
    omitted: z.int().meta({ description: 'Characters cut from its middle.' }),
    attempt: z.int(),
  })
  .meta({ id: 'RunLog' })

export type EnqueueOutcome = z.output<typeof enqueued>
export type ManyRunsResult = z.output<typeof manyRuns>
export type RunLog = z.output<typeof runLog>

/** A run in events, without the fields that may be large. */
export const runSummary = runResource.omit({ payload: true, result: true, toOptions: true }).meta({ id: 'RunSummary' })

export type RunSummary = z.output<typeof runSummary>

export function toRunSummary(run: Visible<Run>): RunSummary {
  const { payload: _, result: __, toOptions: ___, error, ...rest } = toRunResource(run, { role: 'viewer' })
  return error === undefined ? rest : { ...rest, error: withoutStack(error) }
}

function withoutStack({ message, code }: ErrorRecord): ErrorRecord {
  return code === undefined ? { message } : { message, code }
}

/** Hides the receiver's answer from viewers, because it may hold users' data. */
function visibleError({ role }: Pick<Caller, 'role'>, { excerpt, ...error }: ErrorRecord): ErrorRecord {
  return excerpt === undefined || role === 'viewer' ? error : { ...error, excerpt }
}

/** The store's word names the part of the engine that computes a missing key; a caller waits for a worker with the job's code. */
function shownWait(waitsFor: WaitsFor): NonNullable<RunResource['waitsFor']> {
  return waitsFor === 'stamp' ? 'worker' : waitsFor
}

export function toRunResource(run: Visible<Run>, caller: Pick<Caller, 'role'>): RunResource {
  const { id, state, target, origin, schedule, tick, backfill, payload, priority, keep, key, dedupe } = run
  const { waitsFor, reason, createdAt, readyAt, startBy, attempt, failures, takeovers, token, instance } = run
  const { startedAt, finishedAt, cancelRequested, result, error } = run
  return {
    ...{ id, state },
    ...('job' in target ? { job: target.job } : { to: target.sink }),
    ...('sink' in target && target.options !== undefined ? { toOptions: target.options } : {}),
    origin,
    ...(schedule === undefined ? {} : { schedule }),
    ...(tick === undefined ? {} : { tick: iso(tick) }),
    ...(backfill === undefined ? {} : { backfill }),
    ...{ payload, priority, keep },
    ...(key === undefined ? {} : { key: { name: key.name, limit: key.limit, whenBusy: key.whenBusy } }),
    ...(dedupe === undefined ? {} : { dedupe }),
    ...(waitsFor === undefined ? {} : { waitsFor: shownWait(waitsFor) }),
    ...(reason === undefined ? {} : { reason }),
    ...{ createdAt: iso(createdAt), readyAt: iso(readyAt) },
    ...(startBy === undefined ? {} : { startBy: iso(startBy) }),
    ...{ attempt, failures, takeovers },
    ...(token === undefined ? {} : { token }),
    ...(instance === undefined ? {} : { instance }),
    ...(startedAt === undefined ? {} : { startedAt: iso(startedAt) }),
    ...(finishedAt === undefined ? {} : { finishedAt: iso(finishedAt) }),
    ...(cancelRequested === undefined ? {} : { cancelRequested }),
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error: visibleError(caller, error) }),
  }
}
