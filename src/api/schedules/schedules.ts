import { BelfryError, failure, quote } from '../../core/errors.js'
import type { Json } from '../../core/json.js'
import { toJson } from '../../core/json.js'
import { checkOptions } from '../../core/known-options.js'
import { checkName, checkText } from '../../core/names.js'
import { newId } from '../../core/new-id.js'
import type { Overlap } from '../../core/policies.js'
import type { NewRun } from '../../core/run.js'
import type { Schedule, ScheduleDefinition } from '../../core/schedule.js'
import type { Page, ScheduleQuery, ScheduleWrite, Store } from '../../core/store.js'
import type { Duration } from '../../time/duration.js'
import { type Instant, instantMs, isoText } from '../../time/instant.js'
import { dedupeFields, type EnqueueOutcome } from '../jobs/enqueue.js'
import type { Catalogue } from '../jobs/job-catalogue.js'
import { located } from '../located.js'
import { type ApplyOptions, type ApplyResult, applySchedules } from './apply.js'
import { type Explanation, explain, newestTick } from './explain.js'
import { draft, type PreviewedTick, plannedTicks, previewedTicks } from './preview.js'
import { type PutManyOptions, type PutRefusal, putAccepted, putAll } from './put-many.js'
import { conflict, type PutOutcome, putOutcome } from './put-outcome.js'
import { type RecentRuns, recentRuns } from './recent-runs.js'
import {
  checkEntries,
  checkOverlap,
  type PreviewOptions,
  prefixOf,
  previewOptions,
  scheduleQuery,
  versionOf,
  whenRefused,
} from './schedule-arguments.js'
import { parseSchedule, type ScheduleInput } from './schedule-input.js'
import { patchedInput } from './schedule-input-of.js'
import { type ScheduleView, scheduleView } from './schedule-view.js'
import { type Ticks, type TicksOptions, ticksBetween, ticksLimit, ticksOfRemoved } from './ticks.js'

export type { PreviewedTick } from './preview.js'

export interface PutOptions {
  /** Write only over this version; 0 means: only if there is no such schedule yet. */
  readonly ifVersion?: number
}

export interface AddOptions {
  /** What the id begins with. */
  readonly prefix?: string
}

/** Fields to change; null takes one away. */
export type SchedulePatch = { readonly [Field in keyof ScheduleInput]?: ScheduleInput[Field] | null }

export interface TriggerOptions {
  /** Instead of the schedule's own. */
  readonly payload?: unknown
  /** Whether to mind unfinished runs of the schedule. Default allow. */
  readonly overlap?: Overlap
  /** At most one unfinished run of the target has a key: repeating the call adds nothing. */
  readonly key?: string
  /** The key goes on refusing for this long after the run has ended. */
  readonly keyFor?: Duration
}

export interface BackfillOptions {
  readonly from: Instant
  readonly to: Instant
  /** Names the backfill: the same name never runs a tick twice. Default the range itself. */
  readonly name?: string
  /** Default queue-all: one after another. */
  readonly overlap?: Overlap
}

const BACKFILL_BATCH = 1_000
const MAX_BACKFILL = 100_000
/** Whoever patches without a version in mind means the newest, however often it changes meanwhile. */
const MAX_PATCHES = 100

export class Schedules {
  readonly #store: Store
  readonly #catalogue: Catalogue
  readonly #graceMs: number

  constructor(store: Store, catalogue: Catalogue, graceMs: number) {
    this.#store = store
    this.#catalogue = catalogue
    this.#graceMs = graceMs
  }

  /** Makes a schedule under an id of its own: `prefix`, and a UUID that begins with the time. */
  async add(input: ScheduleInput, options: AddOptions = {}): Promise<PutOutcome> {
    const id = `${prefixOf(options)}${newId()}`
    const definition = await this.parse(id, input)
    return this.#write({ id, definition })
  }

  async put(id: string, input: ScheduleInput, options: PutOptions = {}): Promise<PutOutcome> {
    const ifVersion = versionOf(options, 'put', id)
    const definition = await this.parse(id, input)
    return this.#write(ifVersion === undefined ? { id, definition } : { id, definition, ifVersion })
  }

  /**
   * Changes some fields and leaves the others. A timeline takes the place of another (`every` that of `cron`), and so does
   * a target.
   */
  async patch(id: string, changes: SchedulePatch, options: PutOptions = {}): Promise<PutOutcome> {
    checkText(id, 'schedule id')
    const ifVersion = versionOf(options, 'patch', id)
    for (let attempt = 1; ; attempt += 1) {
      const { version, definition } = found(id, await this.#store.schedules.get(id))
      const next = await this.parse(id, patchedInput(id, definition, changes), definition.app)
      try {
        return await this.#write({ id, definition: next, ifVersion: ifVersion ?? version })
      } catch (error) {
        const isRaced = error instanceof BelfryError && error.code === 'VERSION_CONFLICT' && ifVersion === undefined
        if (!isRaced || attempt === MAX_PATCHES) throw error
      }
    }
  }

  async #write(write: ScheduleWrite): Promise<PutOutcome> {
    const [result] = await this.#store.schedules.put([write])
    return putOutcome(write, result)
  }

  /** Many at once, in batches of 1,000; each batch is written whole or not at all. Returns one outcome per entry, in order. */
  putMany(
    entries: Iterable<readonly [id: string, input: ScheduleInput]>,
    options?: PutManyOptions & { readonly whenRefused?: 'throw' },
  ): Promise<readonly PutOutcome[]>
  putMany(
    entries: Iterable<readonly [id: string, input: ScheduleInput]>,
    options: PutManyOptions,
  ): Promise<readonly (PutOutcome | PutRefusal)[]>
  async putMany(
    entries: Iterable<readonly [id: string, input: ScheduleInput]>,
    options: PutManyOptions = {},
  ): Promise<readonly (PutOutcome | PutRefusal)[]> {
    const list = checkEntries(entries)
    const put = whenRefused(options) === 'skip' ? putAccepted : putAll
    return put(this.#store, (id, input) => this.parse(id, input), list)
  }

  async get(id: string): Promise<ScheduleView | undefined> {
    const schedule = await this.#store.schedules.get(checkText(id, 'schedule id'))
    return schedule === undefined ? undefined : scheduleView(schedule)
  }

  /** In order of id; pass `next` as `after` to go on. */
  async list(query: Partial<ScheduleQuery> = {}): Promise<Page<ScheduleView>> {
    const { items, next } = await this.#store.schedules.list(scheduleQuery(query))
    return { items: items.map(scheduleView), ...(next === undefined ? {} : { next }) }
  }

  /** False when there was none. Running work goes on; what never started is skipped as removed. */
  async remove(id: string, options: PutOptions = {}): Promise<boolean> {
    checkText(id, 'schedule id')
    const ifVersion = versionOf(options, 'remove', id)
    const [result] = await this.#store.schedules.remove([id], ifVersion)
    if (result === 'conflict') throw conflict(id, await this.#store.schedules.get(id), ifVersion)
    return result === 'removed'
  }

  /** Stops firing until resumed. The note says why, to whoever looks. */
  async pause(id: string, note?: string): Promise<ScheduleView> {
    checkText(id, 'schedule id')
    if (note !== undefined) checkText(note, `the note of a pause of ${quote(id)}`)
    return scheduleView(found(id, await this.#store.schedules.pause(id, note)))
  }

  async resume(id: string): Promise<ScheduleView> {
    return scheduleView(found(id, await this.#store.schedules.resume(checkText(id, 'schedule id'))))
  }

  /** Runs it now, beside its timeline: the next tick stays what it was. */
  async trigger(id: string, options: TriggerOptions = {}): Promise<EnqueueOutcome> {
    checkText(id, 'schedule id')
    checkOptions(options, ['payload', 'overlap', 'key', 'keyFor'], `trigger of "${id}"`)
    const { payload } = options
    const dedupe = dedupeFields(`trigger of "${id}"`, options)
    if (options.overlap !== undefined) checkOverlap(`trigger of "${id}"`, options.overlap)
    const { definition } = found(id, await this.#store.schedules.get(id))
    const overlap = options.overlap ?? (await this.#triggerOverlap(definition))
    const given = payload === undefined ? definition.payload : toJson(payload, `payload of a trigger of "${id}"`)
    const tick = await this.#store.now()
    const run = await this.#runOf(id, definition, given, { origin: 'trigger', tick, overlap, ...dedupe })
    const [result] = await this.#store.runs.enqueue([run])
    return result as EnqueueOutcome
  }

  /** Runs the ticks of a past stretch of time (again). Repeating the call adds nothing. */
  async backfill(id: string, options: BackfillOptions): Promise<{ readonly runs: readonly EnqueueOutcome[] }> {
    checkText(id, 'schedule id')
    checkOptions(options, ['from', 'to', 'name', 'overlap'], `backfill of "${id}"`)
    checkOverlap(`backfill of "${id}"`, options.overlap ?? 'queue-all')
    if (options.name !== undefined) checkName(options.name, 'backfill name')
    const schedule = found(id, await this.#store.schedules.get(id))
    const { from, to } = await this.#pastRange(id, options)
    const { overlap = 'queue-all', name = `${isoText(from)}/${isoText(to)}` } = options
    const ticks = plannedTicks(schedule, from - 1, to, MAX_BACKFILL + 1)
    if (ticks.length > MAX_BACKFILL) {
      throw failure('OPTION_INVALID', `backfill of "${id}": the range has more than ${MAX_BACKFILL} ticks; split it`)
    }
    const runs: EnqueueOutcome[] = []
    for (let at = 0; at < ticks.length; at += BACKFILL_BATCH) {
      const batch = ticks.slice(at, at + BACKFILL_BATCH).map(({ at: tick }) =>
        this.#runOf(id, schedule.definition, schedule.definition.payload, {
          origin: 'backfill',
          tick,
          backfill: name,
          overlap,
        }),
      )
      runs.push(...(await this.#store.runs.enqueue(await Promise.all(batch))))
    }
    return { runs }
  }

  /** The next ticks of a schedule, or of one that is not saved yet. */
  async preview(what: string | ScheduleInput, options: PreviewOptions = {}): Promise<readonly PreviewedTick[]> {
    const { count, from } = previewOptions(options)
    const now = await this.#store.now()
    const schedule =
      typeof what === 'string' ? found(what, await this.#store.schedules.get(what)) : draft(what, this.#graceMs, now)
    return previewedTicks(schedule, from === undefined ? now : instantMs(from) - 1, count)
  }

  /** Why a tick ran, was skipped, or has not happened yet. Without an instant the newest tick that is past is meant. */
  async explain(id: string, at?: Instant): Promise<Explanation> {
    checkText(id, 'schedule id')
    const instant = at === undefined ? undefined : located(`explain of "${id}"`, () => instantMs(at))
    return explain(this.#store, id, instant ?? (await newestTick(this.#store, id)))
  }

  /** How its newest runs went: the last outcome, and how long they take. */
  async recent(id: string): Promise<RecentRuns> {
    return recentRuns(this.#store, checkText(id, 'schedule id'))
  }

  /**
   * The ticks of a stretch of time, in order: what the timeline has, what happened, and why not. As with `explain`, what
   * happened is known for as long as history is kept, also when the schedule was removed.
   */
  async ticks(id: string, options: TicksOptions): Promise<Ticks> {
    const where = `ticks of "${checkText(id, 'schedule id')}"`
    checkOptions(options, ['from', 'to', 'limit'], where)
    const [from, to] = located(where, () => [instantMs(options.from), instantMs(options.to)] as const)
    if (to < from) throw failure('OPTION_INVALID', `${where}: the range ends before it begins`)
    const limit = ticksLimit(options, where)
    const schedule = await this.#store.schedules.get(id)
    if (schedule !== undefined) return ticksBetween(this.#store, schedule, from, to, limit)
    return (await ticksOfRemoved(this.#store, id, from, to, limit)) ?? refuseMissing(id)
  }

  /** Makes the store's schedules be exactly these, within a scope. */
  async apply(wanted: Readonly<Record<string, ScheduleInput>>, options: ApplyOptions = {}): Promise<ApplyResult> {
    return applySchedules(this.#store, (id, input) => this.parse(id, input), wanted, options)
  }

  /** Checks an input whole: its options, its payload against the job's schema, and its exclusive key. */
  async parse(id: string, input: ScheduleInput, app?: string): Promise<ScheduleDefinition> {
    const definition = parseSchedule(id, input, this.#graceMs, app)
    const { target, payload } = definition
    if ('sink' in target) {
      return { ...definition, ...(await this.#catalogue.sinks.check(id, target, input.overlap)) }
    }
    const job = this.#catalogue.jobs.get(target.job)
    if (job?.parse !== undefined) await job.parse(payload)
    definition.keep = input.keep ?? job?.keep ?? definition.keep
    // Most jobs have no keys: then there is nothing to wait for.
    if (job !== undefined && job.exclusive === undefined) return definition
    const key = await this.#catalogue.keyOf(target, payload)
    if (key !== undefined) definition.key = key
    return definition
  }

  /** A trigger runs beside what is unfinished, unless its sink is to have one message after the other. */
  async #triggerOverlap({ target }: ScheduleDefinition): Promise<Overlap> {
    const order = 'sink' in target ? await this.#catalogue.sinks.orderOf(target) : undefined
    return order?.overlap ?? 'allow'
  }

  async #runOf(
    schedule: string,
    { target, priority, keep }: ScheduleDefinition,
    payload: Json,
    rest: Pick<NewRun, 'origin' | 'tick' | 'backfill' | 'overlap' | 'dedupe' | 'dedupeForMs'>,
  ): Promise<NewRun> {
    if ('job' in target) await this.#catalogue.jobs.get(target.job)?.parse?.(payload)
    const key = await this.#catalogue.keyOf(target, payload)
    return { schedule, target, payload, priority, keep, ...rest, ...(key === undefined ? {} : { key }) }
  }

  async #pastRange(id: string, options: BackfillOptions): Promise<{ from: number; to: number }> {
    const from = instantMs(options.from)
    const to = instantMs(options.to)
    if (to < from) throw failure('OPTION_INVALID', `backfill of "${id}": its end lies before its start`)
    if (to > (await this.#store.now())) {
      throw failure(
        'OPTION_INVALID',
        `backfill of "${id}": it ends in the future, at ${isoText(to)}; those ticks come by themselves`,
      )
    }
    return { from, to }
  }
}

function found(id: string, schedule: Schedule | undefined): Schedule {
  return schedule ?? refuseMissing(id)
}

function refuseMissing(id: string): never {
  throw failure('SCHEDULE_NOT_FOUND', `there is no schedule "${id}"`)
}
