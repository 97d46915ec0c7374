/** Shapes of request bodies, except the schedule itself. */

import { z } from 'zod'
import { DEFAULTS, LIMITS } from '../../core/defaults.js'
import { failure } from '../../core/errors.js'
import { RUN_STATES } from '../../core/runs/run.js'
import { describeDuration } from '../../time/duration.js'
import { MAX_HOLDER } from '../security/lock-holder.js'
import { IDEMPOTENCY_NAMESPACE } from '../security/reserved-names.js'
import { duration, instant, json, listed, name, overlap, parsed, runState, text } from './fields.js'
import { scheduleId, scheduleInput } from './schedule.js'

export const wait = duration.meta({ description: 'Wait up to this long for the run to end, at most a minute.' })

export const trigger = z
  .strictObject({
    payload: json.exactOptional(),
    overlap: overlap.exactOptional(),
    wait: wait.exactOptional(),
  })
  .meta({ id: 'TriggerRequest' })

export const backfill = z
  .strictObject({
    from: instant,
    to: instant,
    name: name('backfill name').exactOptional().meta({ description: 'Default: the range.' }),
    overlap: overlap.exactOptional(),
  })
  .meta({ id: 'BackfillRequest' })

export const previewOf = z
  .strictObject({
    id: text.exactOptional().meta({ description: 'The id of a stored schedule. Either this or `schedule`.' }),
    schedule: scheduleInput.exactOptional(),
    count: z.int().min(0).max(1_000).default(5),
    from: instant.exactOptional().meta({ description: 'Start here instead of now.' }),
  })
  .meta({ id: 'PreviewRequest' })

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
  .meta({ id: 'ApplyRequest' })

const dedupeKey = parsed(name('key'), (key) => {
  if (!key.startsWith(IDEMPOTENCY_NAMESPACE)) return
  throw failure(
    'NAME_INVALID',
    `keys that begin with "${IDEMPOTENCY_NAMESPACE}" belong to requests with an Idempotency-Key`,
  )
}).meta({
  description: `At most one unfinished run of the job has a key. It may not begin with \`${IDEMPOTENCY_NAMESPACE}\`.`,
})

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
  .meta({ id: 'NewRun' })

/** A run of a sink: an event that no schedule has caused. */
export const newDelivery = z
  .strictObject({ ...newRun.shape, toOptions: scheduleInput.shape.toOptions })
  .meta({ id: 'NewDelivery' })

export const runFilters = {
  schedule: text.exactOptional(),
  job: text.exactOptional(),
  sink: text.exactOptional(),
  key: text.exactOptional().meta({ description: 'The exclusive key.' }),
}

export const meantRuns = z
  .strictObject({
    ...runFilters,
    states: listed(z.array(runState).min(1), RUN_STATES.length).exactOptional(),
    cursor: z.string().exactOptional(),
    limit: z
      .int()
      .min(1)
      .max(1_000)
      .exactOptional()
      .meta({ description: 'Default: the most that the service allows.' }),
  })
  .meta({ id: 'RunSelection' })

const token = z.int().meta({ description: 'The token from acquiring.' })

export const holder = name('holder').max(MAX_HOLDER)

export const acquisition = z
  .strictObject({
    ttl: duration.exactOptional().meta({ description: `Default ${describeDuration(DEFAULTS.lock.ttlMs)}.` }),
    permits: z
      .int()
      .min(1)
      .max(LIMITS.permits)
      .exactOptional()
      .meta({
        description: `How many may hold it at once; all holders must give the same number. Default ${DEFAULTS.lock.permits}.`,
      }),
    wait: wait
      .exactOptional()
      .meta({ description: 'Wait up to this long for the lock, at most a minute. Default: do not wait.' }),
    holder: holder.exactOptional().meta({
      description:
        'Names the acquisition: a request repeated after a lost answer gets the same lease. Default: a new name.',
    }),
  })
  .meta({ id: 'LockRequest' })

export const renewal = z
  .strictObject({
    token,
    ttl: duration.exactOptional().meta({ description: `Default ${describeDuration(DEFAULTS.lock.ttlMs)}.` }),
    holder: holder.exactOptional().meta({
      description: 'With it, an expired lease that nobody else has acquired is renewed too.',
    }),
  })
  .meta({ id: 'LockRenewal' })

export type TriggerRequest = z.input<typeof trigger>
export type BackfillRequest = z.input<typeof backfill>
export type PreviewRequest = z.input<typeof previewOf>
export type ApplyRequest = z.input<typeof wantedSchedules>
export type NewRun = z.input<typeof newRun>
export type NewDelivery = z.input<typeof newDelivery>
export type RunSelection = z.input<typeof meantRuns>
export type LockRequest = z.input<typeof acquisition>
export type LockRenewal = z.input<typeof renewal>
