/** The jobs of this instance, and the jobs of other instances as the store knows them. Computes exclusive keys. */

import { type Json, toJson } from '../../core/checks/json.js'
import type { Clock } from '../../core/clock.js'
import { errorRecord, failure, quote } from '../../core/errors.js'
import type { JobInfo } from '../../core/instances/instance.js'
import type { Logger } from '../../core/logger.js'
import { nearest } from '../../core/names/nearest.js'
import { type KeyRule, keyFrom, keyOf, type RunKey } from '../../core/runs/key.js'
import type { Origin, Run, Target } from '../../core/runs/run.js'
import type { Schedule } from '../../core/schedules/schedule.js'
import type { Page, Store } from '../../core/store.js'
import type { JobDefinition } from '../../engine/definitions.js'
import { cachedRead } from '../cached-read.js'
import type { SinkCatalogue } from '../sinks/sink-catalogue.js'
import { MissingPaths } from './missing-paths.js'

/** How long the list of other instances' jobs is cached. */
const FRESH_MS = 5_000
const STAMP_BATCH = 500
/** The log names at most this many unknown jobs, because a caller of the service can invent names. */
const MAX_WARNED = 100

export class JobCatalogue {
  readonly jobs = new Map<string, JobDefinition>()
  /** Those of the jobs that this instance runs. */
  readonly runnable = new Map<string, JobDefinition>()
  readonly sinks: SinkCatalogue
  readonly #named: readonly string[] | undefined
  readonly #store: Store
  readonly #log: Logger
  /** Unknown jobs that the log has named. */
  readonly #warned = new Set<string>()
  readonly #missingPaths: MissingPaths
  readonly #knownJobs: () => Promise<ReadonlyMap<string, JobInfo>>

  /** `named`: the only jobs that this instance runs; undefined for all. */
  constructor(store: Store, clock: Clock, log: Logger, sinks: SinkCatalogue, named: readonly string[] | undefined) {
    this.#named = named
    this.#store = store
    this.#log = log
    this.sinks = sinks
    this.#missingPaths = new MissingPaths(log)
    this.#knownJobs = cachedRead(() => this.#readKnownJobs(), FRESH_MS, clock)
  }

  add(job: JobDefinition): void {
    if (this.jobs.has(job.name)) {
      throw failure('JOB_DUPLICATE', `job "${job.name}" is defined twice: give one of them another name`)
    }
    this.jobs.set(job.name, job)
    if (this.#named?.includes(job.name) ?? true) this.runnable.set(job.name, job)
  }

  checkNamed(): void {
    const unknown = this.#named?.find((name) => !this.jobs.has(name))
    if (unknown === undefined) return
    throw failure(
      'JOB_UNKNOWN',
      `jobs names "${unknown}", which is not defined: define it with belfry.job() before start()`,
    )
  }

  /** The key rule of a target: undefined when it has none, `unknown` when no instance has declared the job yet. */
  async keyRule(target: Target): Promise<KeyRule | undefined | 'unknown'> {
    if (!('job' in target)) return undefined
    const own = this.jobs.get(target.job)
    if (own !== undefined) return own.exclusive?.rule
    const known = await this.#knownJobs()
    const other = known.get(target.job)
    if (other !== undefined) return other.exclusive
    this.#warnOfUnknown(target.job, [...this.jobs.keys(), ...known.keys()])
    return 'unknown'
  }

  /** The exclusive key of a payload, or `unstamped` when only an instance with the job's code can compute it. */
  async keyOf(target: Target, payload: Json, origin: Origin): Promise<RunKey | 'unstamped' | undefined> {
    if ('sink' in target) return (await this.sinks.orderOf(target))?.key
    const rule = await this.keyRule(target)
    if (rule === undefined) return undefined
    if (rule === 'unknown') return 'unstamped'
    const { job } = target
    this.#missingPaths.check(job, rule, payload)
    return keyOf(job, rule, payload, origin) ?? (await this.#keyByCode(job, rule, payload, origin)) ?? 'unstamped'
  }

  /** Stamps keys onto runs and schedules that were stored without the code of this instance's jobs. */
  async stampKeys(): Promise<void> {
    if (this.jobs.size === 0) return
    await eachPage(
      (after) => this.#store.runs.list({ waitsFor: 'stamp', limit: STAMP_BATCH, ...after }),
      (runs) => this.#stampRuns(runs),
    )
    await eachPage(
      (after) => this.#store.schedules.list({ unstamped: true, limit: STAMP_BATCH, ...after }),
      (schedules) => this.#stampSchedules(schedules),
    )
  }

  async #stampRuns(runs: readonly Run[]): Promise<void> {
    const own = runs.filter(({ target }) => this.#has(target))
    const stamps = own.map(async (run) => ({ run: run.id, key: await this.#stampOf(run, run.origin) }))
    if (stamps.length > 0) await this.#store.runs.stamp(await Promise.all(stamps))
  }

  async #stampSchedules(schedules: readonly Schedule[]): Promise<void> {
    for (const { id, version, definition } of schedules) {
      if (!this.#has(definition.target)) continue
      const { key: _, ...rest } = definition
      const key = await this.#stampOf(definition, 'tick')
      await this.#store.schedules.put([
        { id, definition: key === undefined ? rest : { ...rest, key }, ifVersion: version },
      ])
    }
  }

  #has(target: Target): boolean {
    return 'job' in target && this.jobs.has(target.job)
  }

  /**
   * The key of a stored payload. If the job's code throws, the whole payload becomes the key. The run then starts,
   * still exclusive, and fails with the reason, instead of waiting for ever.
   */
  async #stampOf({ target, payload }: Pick<Run, 'target' | 'payload'>, origin: Origin): Promise<RunKey | undefined> {
    try {
      const key = await this.keyOf(target, payload, origin)
      return key === 'unstamped' ? undefined : key
    } catch (error) {
      if (!('job' in target)) return undefined
      this.#log.warn(
        { job: target.job, err: errorRecord(error) },
        'an exclusive key could not be computed; the whole payload is used',
      )
      const rule = this.jobs.get(target.job)?.exclusive?.rule
      return rule && keyFrom(target.job, rule, payload, origin)
    }
  }

  async #keyByCode(name: string, rule: KeyRule, payload: Json, origin: Origin): Promise<RunKey | undefined> {
    const job = this.jobs.get(name)
    if (job?.exclusive?.by === undefined) return undefined
    const value = job.exclusive.by(job.parse === undefined ? payload : await job.parse(payload))
    return keyFrom(name, rule, toJson(value, `the exclusive key of job "${name}"`), origin)
  }

  #warnOfUnknown(job: string, names: readonly string[]): void {
    if (this.#warned.has(job) || this.#warned.size >= MAX_WARNED) return
    this.#warned.add(job)
    const meant = nearest(job, names)
    const hint = meant === undefined ? 'define it where it is to run' : `did you mean ${quote(meant)}?`
    this.#log.warn({ job }, `no instance has defined job ${quote(job)}, so its runs wait until one does: ${hint}`)
  }

  async #readKnownJobs(): Promise<ReadonlyMap<string, JobInfo>> {
    return new Map((await this.#store.instances.jobs()).map((job) => [job.name, job]))
  }
}

/** The most pages that one sweep reads. Runs of other instances' jobs may fill the first ones. */
const MAX_PAGES = 20

async function eachPage<Item>(
  list: (after: { readonly after?: string }) => Promise<Page<Item>>,
  visit: (items: readonly Item[]) => Promise<void>,
): Promise<void> {
  let after: { readonly after?: string } = {}
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { items, next } = await list(after)
    await visit(items)
    if (next === undefined) return
    after = { after: next }
  }
}

export function jobInfo({ name, exclusive }: JobDefinition): JobInfo {
  return exclusive === undefined ? { name } : { name, exclusive: exclusive.rule }
}
