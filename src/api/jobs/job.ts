import { toJson } from '../../core/checks/json.js'
import { checkOptions } from '../../core/checks/known-options.js'
import { failure, quote } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import type { NewRun } from '../../core/runs/run.js'
import type { Store } from '../../core/store.js'
import type { JobDefinition } from '../../engine/definitions.js'
import { type EnqueueOptions, type EnqueueOutcome, newRun } from './enqueue.js'
import type { JobCatalogue } from './job-catalogue.js'

/** The arguments of `enqueue`. The payload is optional if its type allows undefined. */
export type EnqueueArguments<Input> = undefined extends Input
  ? [payload?: Input, options?: EnqueueOptions]
  : [payload: Input, options?: EnqueueOptions]

/** A job, as `belfry.job()` returns it. The job's schema gives the payload's type. */
export class Job<Input, Result = unknown> {
  readonly name: string
  /** A type without a value. It carries the payload's type to the schedules of the job. */
  declare readonly '~input'?: Input
  /** Whether runs with the same key never overlap. */
  readonly exclusive: boolean
  readonly #catalogue: JobCatalogue
  readonly #store: Store

  constructor(definition: JobDefinition, catalogue: JobCatalogue, store: Store) {
    this.name = definition.name
    this.exclusive = definition.exclusive !== undefined
    this.#catalogue = catalogue
    this.#store = store
  }

  async enqueue(...[payload, options = {}]: EnqueueArguments<Input>): Promise<EnqueueOutcome<Result>> {
    const run = await this.#newRun(payload, options)
    const [result] = await this.#enqueue([run], options.tx)
    return result as EnqueueOutcome<Result>
  }

  /** Enqueues many runs in one transaction: all or none. */
  async enqueueMany(
    items: readonly ({ readonly payload: Input } & Omit<EnqueueOptions, 'tx'>)[],
    options: Pick<EnqueueOptions, 'tx'> = {},
  ): Promise<readonly EnqueueOutcome<Result>[]> {
    const where = `enqueueMany of job "${this.name}"`
    checkOptions(options, ['tx'], where)
    checkItems(items, where)
    const { tx } = options
    const runs = await inTurns(items, ({ payload, ...rest }) => this.#newRun(payload, rest))
    return runs.length === 0 ? [] : this.#enqueue(runs, tx)
  }

  /** Whether an enqueue would be accepted now. Reserves nothing: another caller may enqueue first. */
  async available(...[payload]: EnqueueArguments<Input>): Promise<boolean> {
    const stored = toJson(payload, `payload of job "${this.name}"`)
    const key = await this.#catalogue.keyOf({ job: this.name }, stored, 'enqueue')
    if (key === undefined || key === 'unstamped') return true
    return this.#store.runs.available(key.name, key.limit)
  }

  #enqueue(runs: readonly NewRun[], tx: unknown): Promise<readonly EnqueueOutcome<Result>[]> {
    return tx === undefined ? this.#store.runs.enqueue(runs) : this.#store.runs.enqueue(runs, tx)
  }

  #newRun(payload: Input | undefined, options: EnqueueOptions): Promise<NewRun> {
    return newRun(this.#catalogue, this.name, payload, options)
  }
}

function checkItems(items: unknown, where: string): void {
  const hint = 'give a list, as in enqueueMany([{ payload: { … } }])'
  if (!Array.isArray(items)) throw failure('OPTION_INVALID', `${where}: ${quote(items)} is no list; ${hint}`)
  const odd = items.findIndex((item) => typeof item !== 'object' || item === null || Array.isArray(item))
  if (odd !== -1) throw failure('OPTION_INVALID', `${where}: item ${odd} is ${quote(items[odd])}; ${hint}`)
}
