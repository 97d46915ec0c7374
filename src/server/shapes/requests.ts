/** Shapes of request bodies, except the schedule itself. */

import { z } from 'zod'
import { CANCELLABLE, RETRYABLE } from '../../api/runs/change-many.js'
import { DEFAULTS, LIMITS } from '../../core/defaults.js'
import { failure, quote } from '../../core/errors.js'
import type { RunState } from '../../core/runs/run.js'
import { describeDuration, durationMs } from '../../time/duration.js'
import { MAX_HOLDER } from '../security/lock-holder.js'
import { IDEMPOTENCY_NAMESPACE } from '../security/reserved-names.js'
import { duration, durationOf, instant, json, listed, name, note, overlap, parsed, text } from './fields.js'
import { scheduleId, scheduleInput } from './schedule.js'

/** The body of a request that takes no fields. */
export const noFields = z.strictObject({}).meta({ id: 'NoFields', bodies: [{}] })

export const noteRequest = z
  .strictObject({ note: note.exactOptional() })
  .meta({ id: 'NoteRequest', bodies: [{ note: 'until the mail server is back' }] })

const MAX_WAIT_MS = 60_000

function waitOf(hint: string) {
  return durationOf((value) => {
    if (durationMs(value) <= MAX_WAIT_MS) return
    throw failure('DURATION_OUT_OF_RANGE', `wait is ${quote(value)}, and at most a minute is allowed: ${hint}`)
  })
}

const wait = waitOf('ask for the run later instead').meta({
  description: 'Wait up to this long for the run to end, at most a minute.',
})

const ttl = durationOf((value) => {
  if (durationMs(value) < 1) throw failure('DURATION_OUT_OF_RANGE', 'ttl must be longer than 0')
}).meta({ description: `How long the lease lasts. Default ${describeDuration(DEFAULTS.lock.ttlMs)}.` })

export const trigger = z
  .strictObject({
    payload: json.exactOptional(),
    overlap: overlap.exactOptional(),
    wait: wait.exactOptional(),
  })
  .meta({ id: 'TriggerRequest', bodies: [{ payload: { region: 'us' }, wait: '5s' }] })

export const backfill = z
  .strictObject({
    from: instant,
    to: instant,
    name: name('backfill name').exactOptional().meta({ description: 'Default: the range.' }),
    overlap: overlap.exactOptional(),
  })
  .meta({
    id: 'BackfillRequest',
    bodies: [{ from: '2026-03-01T00:00:00Z', to: '2026-03-02T00:00:00Z' }],
  })

export const previewOf = z
  .strictObject({
    id: text.exactOptional().meta({ description: 'The id of a stored schedule. Either this or `schedule`.' }),
    schedule: scheduleInput.exactOptional(),
    count: z.int().min(0).max(1_000).default(5),
    from: instant.exactOptional().meta({ description: 'Start here instead of now.' }),
  })
  .refine(({ id, schedule }) => (id === undefined) !== (schedule === undefined), {
    error: 'give either an id or a schedule',
  })
  .meta({ id: 'PreviewRequest', bodies: [{ schedule: { cron: '30 2 * * *', timezone: 'Europe/Berlin' }, count: 3 }] })

export const wantedSchedules = z
  .strictObject({
    schedules: z.record(scheduleId, scheduleInput).meta({ description: 'By id.' }),
    dryRun: z.boolean().exactOptional().meta({ description: 'Report the changes without making them.' }),
    prune: z
      .boolean()
      .exactOptional()
      .meta({ description: 'Remove the schedules under `prefix` that are not in `schedules`.' }),
    prefix: text.exactOptional().meta({ description: 'The ids that `prune` may remove; "" means all.' }),
  })
  .superRefine(({ schedules, prune, prefix }, context) => {
    if (prune && prefix === undefined) {
      refuseField(context, 'prefix', 'prune needs it: it says which schedules may be removed ("" means all)')
    }
    const stray = prefix === undefined ? undefined : Object.keys(schedules).find((id) => !id.startsWith(prefix))
    if (stray === undefined) return
    context.addIssue({
      code: 'custom',
      path: ['schedules', stray],
      message: `it lies outside the prefix ${quote(prefix)}`,
    })
  })
  .meta({
    id: 'ApplyRequest',
    bodies: [
      { schedules: { 'shop/a': { every: '1h', job: 'send-digest' } }, prune: true, prefix: 'shop/', dryRun: true },
    ],
  })

function refuseField(context: z.RefinementCtx, field: string, message: string): void {
  context.addIssue({ code: 'custom', path: [field], message })
}

const dedupeKey = parsed(name('key'), (key) => {
  if (!key.startsWith(IDEMPOTENCY_NAMESPACE)) return
  throw failure(
    'NAME_INVALID',
    `keys that begin with "${IDEMPOTENCY_NAMESPACE}" belong to requests with an Idempotency-Key`,
  )
}).meta({
  description: `At most one unfinished run of the job has a key. It may not begin with \`${IDEMPOTENCY_NAMESPACE}\`.`,
})

function checkStart(
  { in: delay, at, key, keyFor }: { in?: unknown; at?: unknown; key?: unknown; keyFor?: unknown },
  context: z.RefinementCtx,
): void {
  if (delay !== undefined && at !== undefined) refuseField(context, 'in', 'give either `in` or `at`')
  if (keyFor !== undefined && key === undefined) refuseField(context, 'keyFor', 'it needs a `key`')
}

export const newRun = z
  .strictObject({
    payload: json.exactOptional(),
    at: instant.exactOptional().meta({ description: 'Start then; an instant in the past starts now.' }),
    in: duration.exactOptional().meta({ description: 'Start after this long.' }),
    key: dedupeKey.exactOptional(),
    keyFor: duration
      .exactOptional()
      .meta({ description: 'The key refuses other runs for this long after the run ended.' }),
    priority: z.int().exactOptional(),
    wait: wait.exactOptional(),
  })
  .superRefine(checkStart)
  .meta({ id: 'EnqueueRequest', bodies: [{ payload: { region: 'us' }, in: '3d', key: 'order-7' }] })

/** A run of a sink: an event that no schedule has caused. */
export const newDelivery = z
  .strictObject({ ...newRun.shape, toOptions: scheduleInput.shape.toOptions })
  .superRefine(checkStart)
  .meta({ id: 'DeliveryRequest', bodies: [{ payload: { order: 7 } }] })

export const runFilters = {
  schedule: text.exactOptional(),
  job: text.exactOptional(),
  to: text.exactOptional().meta({ description: 'The sink.' }),
  key: text.exactOptional().meta({ description: 'The exclusive key.' }),
}

const ANY_RUN = 'it names no runs: give schedule, job, to or key, or "all": true to mean every run'

/** Refuses a selection that means every run without saying so: a variable that is undefined leaves its filter out. */
export function checkChosen(
  { schedule, job, to, key, all }: Partial<Record<keyof typeof runFilters, string>> & { readonly all?: boolean },
  context: z.RefinementCtx,
): void {
  const isFiltered = [schedule, job, to, key].some((filter) => filter !== undefined)
  if (isFiltered && all === true) refuseField(context, 'all', 'it means every run, and the filters only some: give one')
  else if (all === false) refuseField(context, 'all', 'it is true, or left out')
  else if (!isFiltered && all === undefined) context.addIssue({ code: 'custom', path: [], message: ANY_RUN })
}

type StatesShape = ReturnType<typeof statesOf>

/** One of the states, or a list of them. `id` names the schema. */
function statesOf(states: readonly RunState[], id: string) {
  const error = `it must be one of ${states.join(', ')}, or a list of them`
  const state = z.enum(states, { error }).meta({ id })
  return z
    .union([state, listed(z.array(state).min(1), states.length)], { error })
    .meta({ id: `${id}s`, description: `Only runs in this state, or in these. Default: ${states.join(', ')}.` })
}

export const cancellableStates = statesOf(CANCELLABLE, 'CancellableState')
export const retryableStates = statesOf(RETRYABLE, 'RetryableState')

/** The fields that choose the runs of a bulk change. */
export function choosing(states: StatesShape) {
  return {
    ...runFilters,
    all: z
      .boolean()
      .exactOptional()
      .meta({ description: 'True means every run. It is needed when no filter is given, and allowed only then.' }),
    state: states.exactOptional(),
  }
}

function selection(states: StatesShape) {
  return z
    .strictObject({
      ...choosing(states),
      cursor: z.string().exactOptional(),
      limit: z
        .int()
        .min(1)
        .max(1_000)
        .exactOptional()
        .meta({ description: 'Default: the most that the service allows.' }),
    })
    .superRefine(checkChosen)
}

export const cancelledRuns = selection(cancellableStates).meta({
  id: 'CancelRunsRequest',
  bodies: [{ job: 'send-digest' }, { all: true }],
})
export const retriedRuns = selection(retryableStates).meta({
  id: 'RetryRunsRequest',
  bodies: [{ job: 'send-digest' }, { all: true }],
})

const token = z.int().meta({ description: 'The token from acquiring.' })

export const holder = name('holder').max(MAX_HOLDER)

export const acquisition = z
  .strictObject({
    ttl: ttl.exactOptional(),
    permits: z
      .int()
      .min(1)
      .max(LIMITS.permits)
      .exactOptional()
      .meta({
        description: `How many may hold it at once; all holders must give the same number. Default ${DEFAULTS.lock.permits}.`,
      }),
    wait: waitOf('send the request again')
      .exactOptional()
      .meta({ description: 'Wait up to this long for the lock, at most a minute. Default: do not wait.' }),
    holder: holder.exactOptional().meta({
      description:
        'Names the acquisition: a request repeated after a lost answer gets the same lease. Default: a new name.',
    }),
  })
  .meta({ id: 'LockRequest', bodies: [{ ttl: '30s', wait: '5s', holder: 'me-1' }] })

export const renewal = z
  .strictObject({
    token,
    ttl: ttl.exactOptional(),
    holder: holder.exactOptional().meta({
      description: 'With it, an expired lease that nobody else has acquired is renewed too.',
    }),
  })
  .meta({ id: 'LockRenewal', bodies: [{ token: 1816, ttl: '30s' }] })

export type TriggerRequest = z.input<typeof trigger>
export type BackfillRequest = z.input<typeof backfill>
export type PreviewRequest = z.input<typeof previewOf>
export type ApplyRequest = z.input<typeof wantedSchedules>
export type NewRun = z.input<typeof newRun>
export type NewDelivery = z.input<typeof newDelivery>
/** The runs of a bulk change: `cancelMany` takes unfinished states, and `retryMany` those of runs that did not succeed. */
export type RunSelection = Omit<z.input<typeof cancelledRuns>, 'state'> & { state?: RunState | RunState[] }
export type LockRequest = z.input<typeof acquisition>
export type LockRenewal = z.input<typeof renewal>
