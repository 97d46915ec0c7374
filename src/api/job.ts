import { failure, quote } from '../core/errors.js'
import { inTurns } from '../core/in-turns.js'
import { toJson } from '../core/json.js'
import { checkOptions } from '../core/known-options.js'
import { checkName } from '../core/names.js'
import type { NewRun } from '../core/run.js'
import type { EnqueueResult, Store } from '../core/store.js'
import type { JobDefinition } from '../engine/work.js'
import { type Duration, durationMs } from '../time/duration.js'
import { type Instant, instantMs } from '../time/instant.js'
import type { Catalogue } from './catalogue.js'
import { located } from './located.js'

export interface EnqueueOptions {
  /** Start after a delay, by the store's clock. */
  readonly in?: Duration
  /** Start at an instant; one in the past starts now. */
  readonly at?: Instant
  /** At most one unfinished run of this job has a key. */
  readonly key?: string
  /** The key goes on refusing for this long after the run has ended. */
  readonly keyFor?: Duration
  /** Higher starts first. Default 0. */
  readonly priority?: number
  /** A transaction of yours on the same database: the run exists when it commits. */
  readonly tx?: unknown
}

/** What became of an enqueue: `run` is the new run, or the one that it lost to. */
export interface Enqueued {
  readonly outcome: EnqueueResult['outcome']
  readonly run: string
}

/** A job whose payload may be left out is enqueued without one. */
export type EnqueueArguments<Input> = undefined extends Input
  ? [payload?: Input, options?: EnqueueOptions]
  : [payload: Input, options?: EnqueueOptions]

/** A job as code holds it: types flow from its schema to here. */
export class Job<Input> {
  readonly name: string
  /** Never there at run time: it carries the payload's type to the schedules of the job. */
  declare readonly '~input'?: Input
  /** Whether runs of it are kept from overlapping. */
  readonly exclusive: boolean
  readonly #definition: JobDefinition
  readonly #catalogue: Catalogue
  readonly #store: Store

  constructor(definition: JobDefinition, catalogue: Catalogue, store: Store) {
    this.name = definition.name
    this.exclusive = definition.exclusive !== undefined
    this.#definition = definition
    this.#catalogue = catalogue
    this.#store = store
  }

  async enqueue(...[payload, options = {}]: EnqueueArguments<Input>): Promise<Enqueued> {
    const run = await this.#newRun(payload, options)
    const [result] = await this.#enqueue([run], options.tx)
    return result as Enqueued
  }

  /** Many at once, in one transaction: all or none. */
  async enqueueMany(
    items: readonly ({ readonly payload: Input } & Omit<EnqueueOptions, 'tx'>)[],
    options: Pick<EnqueueOptions, 'tx'> = {},
  ): Promise<readonly Enqueued[]> {
    const where = `enqueueMany of job "${this.name}"`
    checkOptions(options, ['tx'], where)
    checkItems(items, where)
    const { tx } = options
    const runs = await inTurns(items, ({ payload, ...rest }) => this.#newRun(payload, rest))
    return runs.length === 0 ? [] : this.#enqueue(runs, tx)
  }

  /** Whether an enqueue would be accepted now. Reserves nothing: another may come first. */
  async available(...[payload]: EnqueueArguments<Input>): Promise<boolean> {
    const stored = toJson(payload, `payload of job "${this.name}"`)
    const key = await this.#catalogue.keyOf({ job: this.name }, stored)
    if (key === undefined || key === 'unstamped') return true
    return this.#store.runs.available(key.name, key.limit)
  }

  #enqueue(runs: readonly NewRun[], tx: unknown): Promise<readonly Enqueued[]> {
    return tx === undefined ? this.#store.runs.enqueue(runs) : this.#store.runs.enqueue(runs, tx)
  }

  async #newRun(payload: Input | undefined, options: EnqueueOptions): Promise<NewRun> {
    const fields = enqueueFields(this.name, options)
    const stored = toJson(payload, `payload of job "${this.name}"`)
    await this.#definition.parse?.(stored)
    const target = { job: this.name }
    const key = await this.#catalogue.keyOf(target, stored)
    return {
      target,
      origin: 'enqueue',
      payload: stored,
      keep: this.#definition.keep,
      ...fields,
      ...(key === undefined ? {} : { key, checkKey: this.#definition.exclusive?.rule.checkOnEnqueue ?? false }),
    }
  }
}

function checkItems(items: unknown, where: string): void {
  const hint = 'give a list, as in enqueueMany([{ payload: { … } }])'
  if (!Array.isArray(items)) throw failure('OPTION_INVALID', `${where}: ${quote(items)} is no list; ${hint}`)
  const odd = items.findIndex((item) => typeof item !== 'object' || item === null || Array.isArray(item))
  if (odd !== -1) throw failure('OPTION_INVALID', `${where}: item ${odd} is ${quote(items[odd])}; ${hint}`)
}

const KNOWN = ['in', 'at', 'key', 'keyFor', 'priority', 'tx']
const MAX_PRIORITY = 1_000_000

function enqueueFields(job: string, options: EnqueueOptions) {
  checkOptions(options, KNOWN, `enqueue of job "${job}"`)
  const { in: delay, at, key, keyFor, priority = 0 } = options
  if (delay !== undefined && at !== undefined) throw invalid(job, 'give `in` or `at`, not both')
  if (keyFor !== undefined && key === undefined) throw invalid(job, '`keyFor` needs a `key`')
  if (!Number.isInteger(priority) || Math.abs(priority) > MAX_PRIORITY) {
    throw invalid(job, `priority is ${String(priority)}; it must be a whole number of at most ${MAX_PRIORITY}`)
  }
  return located(`enqueue of job "${job}"`, () => ({
    priority,
    ...(delay === undefined ? {} : { delayMs: durationMs(delay) }),
    ...(at === undefined ? {} : { readyAt: instantMs(at) }),
    ...(key === undefined ? {} : { dedupe: checkName(key, 'enqueue key') }),
    ...(keyFor === undefined ? {} : { dedupeForMs: durationMs(keyFor) }),
  }))
}

function invalid(job: string, problem: string) {
  return failure('OPTION_INVALID', `enqueue of job "${job}": ${problem}`)
}
