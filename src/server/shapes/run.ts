import { z } from 'zod'
import type { ErrorRecord } from '../../core/errors.js'
import type { Run } from '../../core/run.js'
import type { Caller } from '../security/caller.js'
import { iso, json, keep, runState, skipReason, time } from './fields.js'

const runError = z
  .strictObject({
    message: z.string(),
    code: z.string().exactOptional(),
    stack: z.string().exactOptional(),
    excerpt: z
      .string()
      .exactOptional()
      .meta({ description: 'The first words of what a receiver answered. Not for viewers.' }),
  })
  .meta({ id: 'RunError' })

const whenBusy = z.enum(['skip', 'wait'])

export const runResource = z
  .strictObject({
    id: z.string(),
    state: runState,
    job: z.string().exactOptional(),
    to: z.string().exactOptional(),
    toOptions: json.exactOptional(),
    origin: z.enum(['tick', 'trigger', 'backfill', 'enqueue']),
    schedule: z.string().exactOptional(),
    tick: time.exactOptional().meta({ description: 'The nominal instant.' }),
    backfill: z.string().exactOptional(),
    payload: json,
    priority: z.int(),
    keep,
    key: z.strictObject({ name: z.string(), limit: z.int(), whenBusy }).exactOptional(),
    dedupe: z.string().exactOptional().meta({ description: 'The key that it was enqueued under.' }),
    waitsFor: z.enum(['stamp', 'overlap', 'key']).exactOptional(),
    reason: skipReason.exactOptional(),
    createdAt: time,
    readyAt: time.meta({ description: 'When it may start, or start again.' }),
    startBy: time.exactOptional(),
    attempt: z.int(),
    failures: z.int(),
    takeovers: z.int(),
    token: z.int().exactOptional().meta({ description: 'The fencing token of the newest attempt.' }),
    instance: z.string().exactOptional(),
    startedAt: time.exactOptional(),
    finishedAt: time.exactOptional(),
    cancelRequested: z.literal(true).exactOptional(),
    result: json.exactOptional(),
    error: runError.exactOptional(),
  })
  .meta({ id: 'Run' })

export type RunResource = z.output<typeof runResource>

/** A run as events show it: without what may be large. */
export const runSummary = runResource.omit({ payload: true, result: true, toOptions: true }).meta({ id: 'RunSummary' })

export type RunSummary = z.output<typeof runSummary>

export function toRunSummary(run: Run): RunSummary {
  const { payload: _, result: __, toOptions: ___, error, ...rest } = toRunResource(run, { role: 'viewer' })
  return error === undefined ? rest : { ...rest, error: withoutStack(error) }
}

function withoutStack({ message, code }: ErrorRecord): ErrorRecord {
  return code === undefined ? { message } : { message, code }
}

/** What a receiver answered is others' data: a caller who may only look does not see it. */
function shownTo({ role }: Pick<Caller, 'role'>, { excerpt, ...error }: ErrorRecord): ErrorRecord {
  return excerpt === undefined || role === 'viewer' ? error : { ...error, excerpt }
}

export function toRunResource(run: Run, caller: Pick<Caller, 'role'>): RunResource {
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
    ...(waitsFor === undefined ? {} : { waitsFor }),
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
    ...(error === undefined ? {} : { error: shownTo(caller, error) }),
  }
}
