import { BelfryError, quote } from '../../core/errors.js'
import { checkText } from '../../core/names/names.js'
import { newId } from '../../core/names/new-id.js'
import type { ScheduleDefinition } from '../../core/schedules/schedule.js'
import type { CountQuery, Page, ScheduleWrite, Store } from '../../core/store.js'
import { type Instant, instantMs } from '../../time/instant.js'
import type { EnqueueOutcome } from '../jobs/enqueue.js'
import type { JobCatalogue } from '../jobs/job-catalogue.js'
import { located } from '../located.js'
import { type ApplyOptions, type ApplyResult, applySchedules } from './apply.js'
import { type ExplainOptions, type Explanation, explain, newestTick } from './explain.js'
import { type BackfillOptions, ExtraRuns, type TriggerOptions } from './extra-runs.js'
import { foundSchedule } from './found-schedule.js'
import { type PreviewedTick, type PreviewOptions, preview } from './preview.js'
import { type PutManyOptions, type PutRefusal, putAccepted, putAll } from './put-many.js'
import { conflict, type PutOutcome, putOutcome } from './put-outcome.js'
import { type RecentRuns, recentRuns } from './recent-runs.js'
import {
  checkEntries,
  prefixOf,
  type ScheduleFilter,
  scheduleQuery,
  versionOf,
  whenRefused,
} from './schedule-arguments.js'
import { parseSchedule, type ScheduleFields } from './schedule-input.js'
import { patchedInput } from './schedule-input-of.js'
import { type ScheduleView, scheduleView } from './schedule-view.js'
import { scheduleTicks, type Ticks, type TicksOptions } from './ticks.js'

export type { BackfillOptions, TriggerOptions } from './extra-runs.js'
export type { PreviewedTick } from './preview.js'

export interface PutOptions {
  /** Write only over this version; 0 means: only if there is no such schedule yet. */
  readonly ifVersion?: number
}

export interface AddOptions {
  /** The beginning of the new id. */
  readonly prefix?: string
}

/** The fields to change; null removes a field. */
export type SchedulePatch = { readonly [Field in keyof ScheduleFields]?: ScheduleFields[Field] | null }

/**
 * A patch without `ifVersion` applies to the newest version. If the schedule changes meanwhile, the patch is tried
 * again, at most this often.
 */
const MAX_PATCHES = 100

export class Schedules {
  readonly #store: Store
  readonly #catalogue: JobCatalogue
  readonly #graceMs: number
  readonly #extraRuns: ExtraRuns

  constructor(store: Store, catalogue: JobCatalogue, graceMs: number) {
    this.#store = store
    this.#catalogue = catalogue
    this.#graceMs = graceMs
    this.#extraRuns = new ExtraRuns(store, catalogue)
  }

  /** Creates a schedule under a new id: `prefix`, then a UUID that begins with the time. */
  async add(input: ScheduleFields, options: AddOptions = {}): Promise<PutOutcome> {
    const id = `${prefixOf(options)}${newId()}`
    const definition = await this.parse(id, input)
    return this.#write({ id, definition })
  }

  async put(id: string, input: ScheduleFields, options: PutOptions = {}): Promise<PutOutcome> {
    const ifVersion = versionOf(options, 'put', id)
    const definition = await this.parse(id, input)
    return this.#write(ifVersion === undefined ? { id, definition } : { id, definition, ifVersion })
  }

  /**
   * Changes some fields and keeps the others. A new timeline replaces the old one (`every` replaces `cron`), and so does a
   * new target.
   */
  async patch(id: string, changes: SchedulePatch, options: PutOptions = {}): Promise<PutOutcome> {
    checkText(id, 'schedule id')
    const ifVersion = versionOf(options, 'patch', id)
    for (let attempt = 1; ; attempt += 1) {
      const { version, definition } = foundSchedule(id, await this.#store.schedules.get(id))
      const next = await this.parse(id, patchedInput(id, definition, changes), definition.app)
      try {
        return await this.#write({ id, definition: next, ifVersion: ifVersion ?? version })
      } catch (error) {
        const isRaced = error instanceof BelfryError && error.code === 'VERSION_CONFLICT' && ifVersion === undefined
        if (!isRaced || attempt === MAX_PATCHES) throw error
      }
    }
  }

  /**
   * Puts many schedules in batches of 1,000. Each batch is written whole or not at all. Returns one outcome per entry,
   * in order.
   */
  putMany(
    entries: Iterable<readonly [id: string, input: ScheduleFields]>,
    options?: PutManyOptions & { readonly whenRefused?: 'throw' },
  ): Promise<readonly PutOutcome[]>
  putMany(
    entries: Iterable<readonly [id: string, input: ScheduleFields]>,
    options: PutManyOptions,
  ): Promise<readonly (PutOutcome | PutRefusal)[]>
  async putMany(
    entries: Iterable<readonly [id: string, input: ScheduleFields]>,
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

  /** How many schedules have ids that begin with the prefix. Counting stops at the limit. */
  async count(query: CountQuery): Promise<number> {
    return this.#store.schedules.count(query)
  }

  /** In order of id. Pass `next` as `after` for the next page. */
  async list(query: ScheduleFilter = {}): Promise<Page<ScheduleView>> {
    const { items, next } = await this.#store.schedules.list(scheduleQuery(query))
    return { items: items.map(scheduleView), ...(next === undefined ? {} : { next }) }
  }

  /**
   * Returns false when there was no such schedule. Running work continues; runs that never started are skipped as removed.
   */
  async remove(id: string, options: PutOptions = {}): Promise<boolean> {
    checkText(id, 'schedule id')
    const ifVersion = versionOf(options, 'remove', id)
    const [result] = await this.#store.schedules.remove([id], ifVersion)
    if (result === 'conflict') throw conflict(id, await this.#store.schedules.get(id), ifVersion)
    return result === 'removed'
  }

  /** Stops the schedule from firing until it is resumed. `explain` and lists show the note. */
  async pause(id: string, note?: string): Promise<ScheduleView> {
    checkText(id, 'schedule id')
    if (note !== undefined) checkText(note, `the note of a pause of ${quote(id)}`)
    return scheduleView(foundSchedule(id, await this.#store.schedules.pause(id, note)))
  }

  async resume(id: string): Promise<ScheduleView> {
    return scheduleView(foundSchedule(id, await this.#store.schedules.resume(checkText(id, 'schedule id'))))
  }

  /** Runs the schedule now. Its next tick stays as it was. */
  async trigger(id: string, options: TriggerOptions = {}): Promise<EnqueueOutcome> {
    return this.#extraRuns.trigger(checkText(id, 'schedule id'), options)
  }

  /** Runs the ticks of a past range, including those that ran before. Repeating the call adds nothing. */
  async backfill(id: string, options: BackfillOptions): Promise<{ readonly runs: readonly EnqueueOutcome[] }> {
    return { runs: await this.#extraRuns.backfill(checkText(id, 'schedule id'), options) }
  }

  /** The next ticks of a stored schedule, or of an input that is not stored. */
  async preview(what: string | ScheduleFields, options: PreviewOptions = {}): Promise<readonly PreviewedTick[]> {
    return preview(this.#store, what, options, this.#graceMs)
  }

  /**
   * Why a tick ran, was skipped, or has not happened yet. Default the newest past tick. Throws `SCHEDULE_NOT_FOUND` for an
   * id that the store does not know, also not from its history.
   */
  async explain(id: string, at?: Instant, { names = 'all' }: ExplainOptions = {}): Promise<Explanation> {
    checkText(id, 'schedule id')
    const instant = at === undefined ? undefined : located(`explain of "${id}"`, () => instantMs(at))
    return explain(this.#store, id, instant ?? (await newestTick(this.#store, id)), names)
  }

  /** The outcome of the schedule's last run, and how long its runs take. */
  async recent(id: string): Promise<RecentRuns> {
    return recentRuns(this.#store, checkText(id, 'schedule id'))
  }

  /**
   * The ticks of a range of time, in order: ticks of the present timeline and recorded ticks, with the reasons of
   * skips. Recorded ticks are known as long as their history is kept, even after the schedule was removed.
   */
  async ticks(id: string, options: TicksOptions): Promise<Ticks> {
    return scheduleTicks(this.#store, checkText(id, 'schedule id'), options)
  }

  /**
   * Creates and updates schedules so that they equal the given ones. With `prune` it also removes the others under a prefix.
   */
  async apply(wanted: Readonly<Record<string, ScheduleFields>>, options: ApplyOptions = {}): Promise<ApplyResult> {
    return applySchedules(this.#store, (id, input) => this.parse(id, input), wanted, options)
  }

  /** Checks the options, the payload against the job's schema, and computes the exclusive key. */
  async parse(id: string, input: ScheduleFields, app?: string): Promise<ScheduleDefinition> {
    const definition = parseSchedule(id, input, this.#graceMs, app)
    const { target, payload } = definition
    if ('sink' in target) {
      return { ...definition, ...(await this.#catalogue.sinks.check(`schedule "${id}"`, target, input.overlap)) }
    }
    const job = this.#catalogue.jobs.get(target.job)
    await job?.parse?.(payload)
    const keep = input.keep ?? job?.keep ?? definition.keep
    const key = await this.#catalogue.keyOf(target, payload, 'tick')
    return { ...definition, keep, ...(key === undefined ? {} : { key }) }
  }

  async #write(write: ScheduleWrite): Promise<PutOutcome> {
    const [result] = await this.#store.schedules.put([write])
    return putOutcome(write, result)
  }
}
