/** The sinks of this instance and of other live instances. Checks the target of a schedule. */

import type { Json } from '../../core/checks/json.js'
import type { Clock } from '../../core/clock.js'
import { BelfryError, errorRecord, failureAt, quote } from '../../core/errors.js'
import type { SinkInfo } from '../../core/instances/instance.js'
import { checkName } from '../../core/names/names.js'
import type { Overlap } from '../../core/policies.js'
import { orderKey, type RunKey } from '../../core/runs/key.js'
import type { Target } from '../../core/runs/run.js'
import type { Store } from '../../core/store.js'
import type { SinkDefinition } from '../../engine/definitions.js'
import { cachedRead } from '../cached-read.js'

type SinkTarget = Extract<Target, { readonly sink: string }>

/**
 * How the messages of an ordered sink stay in order. By `overlap`, a tick waits until the schedule's tick before it is
 * delivered. By `key`, which schedules may share, it waits until the message that holds the key is delivered.
 */
export interface Order {
  readonly overlap?: Overlap
  readonly key?: RunKey
}

/** How long the list of other instances' sinks is cached. */
const FRESH_MS = 5_000

export class SinkCatalogue {
  readonly #store: Store
  readonly #own: ReadonlyMap<string, SinkDefinition>
  /**
   * Whether unknown sinks are refused. An instance without sinks of its own cannot judge, because other instances may
   * have them.
   */
  readonly #isComplete: boolean
  readonly #liveSinks: () => Promise<ReadonlyMap<string, SinkInfo>>

  constructor(store: Store, clock: Clock, own: ReadonlyMap<string, SinkDefinition>, isComplete: boolean) {
    this.#store = store
    this.#own = own
    this.#isComplete = isComplete
    this.#liveSinks = cachedRead(() => this.#readLiveSinks(), FRESH_MS, clock)
  }

  /** The sinks as data, for the store. */
  infos(): readonly SinkInfo[] {
    return [...this.#own.values()].map(({ name, ordered }) => (ordered ? { name, ordered } : { name }))
  }

  /** Undefined when the sink is not ordered. */
  async orderOf({ sink, options }: SinkTarget): Promise<Order | undefined> {
    if ((await this.#infoOf(sink))?.ordered !== true) return undefined
    const key = keyIn(options)
    return typeof key === 'string' ? { key: orderKey(sink, key) } : { overlap: 'queue-all' }
  }

  /** Checks that a sink exists and accepts the options for it. `where` is for errors: `schedule "digest/eu"`. */
  async check(where: string, { sink: name, options }: SinkTarget, overlap: Overlap | undefined): Promise<Order> {
    const info = await this.#infoOf(name)
    if (info === undefined && this.#isComplete) throw unknown(where, name, [...this.#own.keys()])
    const key = checkKeyOption(where, options)
    this.#checkOptions(where, name, key === undefined ? options : without(options, 'key'), key)
    if (info?.ordered !== true) return { overlap: overlap ?? 'allow' }
    if (key !== undefined) return { overlap: overlap ?? 'allow', key: orderKey(name, key) }
    if (overlap === 'allow') {
      throw invalid(
        where,
        `overlap is allow, and sink "${name}" is ordered: leave overlap out, or make it queue-all`,
        'overlap',
      )
    }
    return { overlap: overlap ?? 'queue-all' }
  }

  #checkOptions(where: string, name: string, options: Json | undefined, key: string | undefined): void {
    const sink = this.#own.get(name)?.sink
    if (sink?.check === undefined) return
    try {
      sink.check(options ?? {}, key)
    } catch (error) {
      const code = error instanceof BelfryError ? error.code : 'OPTION_INVALID'
      const message = `${where}: toOptions: ${errorRecord(error).message}`
      const path = ['toOptions', ...((error instanceof BelfryError ? error.path : undefined) ?? [])]
      throw Object.assign(new BelfryError(code, message, { cause: error }), { path })
    }
  }

  async #infoOf(name: string): Promise<SinkInfo | undefined> {
    const own = this.#own.get(name)
    return own ?? (await this.#liveSinks()).get(name)
  }

  async #readLiveSinks(): Promise<ReadonlyMap<string, SinkInfo>> {
    const [instances, now] = await Promise.all([this.#store.instances.list(), this.#store.now()])
    const live = instances.filter(({ expiresAt }) => expiresAt >= now)
    return new Map(live.flatMap(({ sinks = [] }) => sinks.map((sink) => [sink.name, sink] as const)))
  }
}

/** Returns the option `key`, which the engine reads. The other options are for the sink. */
function checkKeyOption(where: string, options: Json | undefined): string | undefined {
  if (options === undefined) return undefined
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw invalid(where, `toOptions is ${quote(options)}; it must be an object`, 'toOptions')
  }
  const key = keyIn(options)
  return key === undefined ? undefined : checkName(key, `toOptions.key of ${where}`)
}

function keyIn(options: Json | undefined): Json | undefined {
  return (options as { readonly [name: string]: Json } | undefined)?.key
}

function without(options: Json | undefined, name: string): Json | undefined {
  const rest = { ...(options as { readonly [name: string]: Json }) }
  delete rest[name]
  return Object.keys(rest).length === 0 ? undefined : rest
}

function unknown(where: string, name: string, known: readonly string[]) {
  const there = known.length === 0 ? 'no sinks are configured' : `there are ${known.join(', ')}`
  const brief = `${where}: there is no sink "${name}"`
  return Object.assign(failureAt(['to'], 'SINK_UNKNOWN', `${brief}; ${there}`), { brief })
}

function invalid(where: string, problem: string, field: string) {
  return failureAt([field], 'OPTION_INVALID', `${where}: ${problem}`)
}
