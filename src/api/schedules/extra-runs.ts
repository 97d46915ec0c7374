/** Runs of a schedule that its timeline does not cause: triggers now, and backfills of past ticks. */

import { type Json, toJson } from '../../core/checks/json.js'
import { checkOptions } from '../../core/checks/known-options.js'
import { DEFAULTS, LIMITS } from '../../core/defaults.js'
import { failureAt } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import { checkName } from '../../core/names/names.js'
import type { Overlap } from '../../core/policies.js'
import type { NewRun } from '../../core/runs/run.js'
import type { Schedule, ScheduleDefinition } from '../../core/schedules/schedule.js'
import type { Store } from '../../core/store.js'
import type { Duration } from '../../time/duration.js'
import { type Instant, instantMs, isoText } from '../../time/instant.js'
import { dedupeFields, type EnqueueOutcome } from '../jobs/enqueue.js'
import type { JobCatalogue } from '../jobs/job-catalogue.js'
import { foundSchedule } from './found-schedule.js'
import { plannedTicks } from './preview.js'
import { checkOverlap } from './schedule-arguments.js'

export interface TriggerOptions {
  /** Replaces the schedule's own payload. */
  readonly payload?: unknown
  /** What the run does while an earlier run of the schedule is unfinished. Default allow. */
  readonly overlap?: Overlap
  /** The dedupe key: at most one unfinished run of the target has it, so a repeated call adds nothing. */
  readonly key?: string
  /** The dedupe key refuses repetitions for this long after the run has ended. */
  readonly keyFor?: Duration
}

export interface BackfillOptions {
  readonly from: Instant
  readonly to: Instant
  /** Identifies the backfill, which runs each tick once, however often the call is repeated. Default the range itself. */
  readonly name?: string
  /** Default queue-all: one after another. */
  readonly overlap?: Overlap
  /** Ends the backfill between two batches of runs. */
  readonly signal?: AbortSignal
  /** Called with the outcomes of each batch. */
  readonly onProgress?: (outcomes: readonly EnqueueOutcome[]) => void
}

const BATCH = 1_000

type Origin = Pick<NewRun, 'origin' | 'tick' | 'backfill' | 'overlap' | 'dedupe' | 'dedupeForMs'>

export class ExtraRuns {
  readonly #store: Store
  readonly #catalogue: JobCatalogue

  constructor(store: Store, catalogue: JobCatalogue) {
    this.#store = store
    this.#catalogue = catalogue
  }

  async trigger(id: string, options: TriggerOptions): Promise<EnqueueOutcome> {
    const where = `trigger of "${id}"`
    checkOptions(options, ['payload', 'overlap', 'key', 'keyFor'], where)
    const dedupe = dedupeFields(where, options)
    if (options.overlap !== undefined) checkOverlap(where, options.overlap)
    const { definition } = foundSchedule(id, await this.#store.schedules.get(id))
    const overlap = options.overlap ?? (await this.#overlapOf(definition))
    const payload =
      options.payload === undefined ? definition.payload : toJson(options.payload, `payload of a ${where}`)
    const tick = await this.#store.now()
    const run = await this.#runOf(id, definition, payload, { origin: 'trigger', tick, overlap, ...dedupe })
    const [result] = await this.#store.runs.enqueue([run])
    return result as EnqueueOutcome
  }

  async backfill(id: string, options: BackfillOptions): Promise<readonly EnqueueOutcome[]> {
    const where = `backfill of "${id}"`
    checkOptions(options, ['from', 'to', 'name', 'overlap', 'signal', 'onProgress'], where)
    checkOverlap(where, options.overlap ?? DEFAULTS.backfill.overlap)
    if (options.name !== undefined) checkName(options.name, 'backfill name')
    const schedule = foundSchedule(id, await this.#store.schedules.get(id))
    const { from, to } = await this.#pastRange(where, options)
    const { overlap = DEFAULTS.backfill.overlap, name = `${isoText(from)}/${isoText(to)}` } = options
    const { definition } = schedule
    const ticks: number[] = []
    for await (const part of plannedTicks(schedule, from - 1, to, LIMITS.backfillTicks + 1)) {
      ticks.push(...part.map(({ at }) => at))
    }
    if (ticks.length > LIMITS.backfillTicks) {
      throw failureAt(
        ['to'],
        'OPTION_INVALID',
        `${where}: the range has more than ${LIMITS.backfillTicks} ticks; split it`,
      )
    }
    const outcomes: EnqueueOutcome[] = []
    for (let at = 0; at < ticks.length; at += BATCH) {
      const runs = await inTurns(ticks.slice(at, at + BATCH), (tick) =>
        this.#runOf(id, definition, definition.payload, { origin: 'backfill', tick, backfill: name, overlap }),
      )
      options.signal?.throwIfAborted()
      const enqueued = await this.#store.runs.enqueue(runs)
      outcomes.push(...enqueued)
      options.onProgress?.(enqueued)
    }
    return outcomes
  }

  /** The overlap policy of a trigger. An ordered sink gets one message after another, including those of triggers. */
  async #overlapOf({ target }: ScheduleDefinition): Promise<Overlap> {
    const order = 'sink' in target ? await this.#catalogue.sinks.orderOf(target) : undefined
    return order?.overlap ?? 'allow'
  }

  async #runOf(
    schedule: Schedule['id'],
    { target, priority, keep }: ScheduleDefinition,
    payload: Json,
    origin: Origin,
  ): Promise<NewRun> {
    if ('job' in target) await this.#catalogue.jobs.get(target.job)?.parse?.(payload)
    const key = await this.#catalogue.keyOf(target, payload, origin.origin)
    return { schedule, target, payload, priority, keep, ...origin, ...(key === undefined ? {} : { key }) }
  }

  async #pastRange(where: string, options: BackfillOptions): Promise<{ readonly from: number; readonly to: number }> {
    const from = instantMs(options.from)
    const to = instantMs(options.to)
    if (to < from) throw failureAt(['to'], 'OPTION_INVALID', `${where}: its end lies before its start`)
    if (to <= (await this.#store.now())) return { from, to }
    throw failureAt(
      ['to'],
      'OPTION_INVALID',
      `${where}: it ends in the future, at ${isoText(to)}; those ticks come by themselves`,
    )
  }
}
