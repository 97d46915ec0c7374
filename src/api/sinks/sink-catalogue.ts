/** The sinks of this instance, and what the store knows of others': enough to check what a schedule says of its own. */
import type { Clock } from '../../core/clock.js'
import { BelfryError, errorRecord, failure, quote } from '../../core/errors.js'
import type { SinkInfo } from '../../core/instance.js'
import type { Json } from '../../core/json.js'
import { orderKey, type RunKey } from '../../core/key.js'
import { checkName } from '../../core/names.js'
import type { Overlap } from '../../core/policies.js'
import type { Target } from '../../core/run.js'
import type { Store } from '../../core/store.js'
import type { SinkDefinition } from '../../engine/definitions.js'

type SinkTarget = Extract<Target, { readonly sink: string }>

/**
 * How messages are kept in order: a tick waits until the one before it is delivered or, where schedules share a key,
 * whoever holds the key is.
 */
export interface Order {
  readonly overlap?: Overlap
  readonly key?: RunKey
}

/** How long what the store said about other instances' sinks is good for. */
const FRESH_MS = 5_000

export class SinkCatalogue {
  readonly #store: Store
  readonly #clock: Clock
  readonly #own: ReadonlyMap<string, SinkDefinition>
  /** Whoever was given no sinks at all leaves it to others to know them. */
  readonly #isComplete: boolean
  #others: { readonly at: number; readonly sinks: Promise<ReadonlyMap<string, SinkInfo>> } | undefined

  constructor(store: Store, clock: Clock, own: ReadonlyMap<string, SinkDefinition>, isComplete: boolean) {
    this.#store = store
    this.#clock = clock
    this.#own = own
    this.#isComplete = isComplete
  }

  /** The sinks as data, for others. */
  infos(): readonly SinkInfo[] {
    return [...this.#own.values()].map(({ name, ordered }) => (ordered ? { name, ordered } : { name }))
  }

  /** How the messages of a schedule that says this are kept in order; undefined when they are not. */
  async orderOf({ sink, options }: SinkTarget): Promise<Order | undefined> {
    if ((await this.#infoOf(sink))?.ordered !== true) return undefined
    const key = keyIn(options)
    return typeof key === 'string' ? { key: orderKey(sink, key) } : { overlap: 'queue-all' }
  }

  /** Checks that a schedule's sink exists and accepts what the schedule says of its delivery. */
  async check(id: string, { sink: name, options }: SinkTarget, overlap: Overlap | undefined): Promise<Order> {
    const info = await this.#infoOf(name)
    if (info === undefined && this.#isComplete) throw unknown(id, name, [...this.#own.keys()])
    const key = checkWords(id, options)
    this.#checkOptions(id, name, key === undefined ? options : without(options, 'key'))
    if (info?.ordered !== true) return { overlap: overlap ?? 'allow' }
    if (key !== undefined) return { overlap: overlap ?? 'allow', key: orderKey(name, key) }
    if (overlap === 'allow') {
      throw invalid(id, `overlap is allow, and sink "${name}" is ordered: leave overlap out, or make it queue-all`)
    }
    return { overlap: overlap ?? 'queue-all' }
  }

  #checkOptions(id: string, name: string, options: Json | undefined): void {
    const sink = this.#own.get(name)?.sink
    if (sink?.check === undefined) return
    try {
      sink.check(options ?? {})
    } catch (error) {
      const code = error instanceof BelfryError ? error.code : 'OPTION_INVALID'
      throw new BelfryError(code, `schedule "${id}": toOptions: ${errorRecord(error).message}`, { cause: error })
    }
  }

  /** Known of this instance's own, or of a live one's. */
  async #infoOf(name: string): Promise<SinkInfo | undefined> {
    const own = this.#own.get(name)
    return own ?? (await this.#othersSinks()).get(name)
  }

  #othersSinks(): Promise<ReadonlyMap<string, SinkInfo>> {
    const now = this.#clock.monotonic()
    if (this.#others === undefined || now - this.#others.at > FRESH_MS) {
      const asked = { at: now, sinks: this.#askForSinks() }
      this.#others = asked
      asked.sinks.catch(() => {
        if (this.#others === asked) this.#others = undefined
      })
    }
    return this.#others.sinks
  }

  async #askForSinks(): Promise<ReadonlyMap<string, SinkInfo>> {
    const [instances, now] = await Promise.all([this.#store.instances.list(), this.#store.now()])
    const live = instances.filter(({ expiresAt }) => expiresAt >= now)
    return new Map(live.flatMap(({ sinks = [] }) => sinks.map((sink) => [sink.name, sink] as const)))
  }
}

/** What a schedule says to its sink is an object; its key is the engine's to read. */
function checkWords(id: string, options: Json | undefined): string | undefined {
  if (options === undefined) return undefined
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw invalid(id, `toOptions is ${quote(options)}; it must be an object`)
  }
  const key = keyIn(options)
  return key === undefined ? undefined : checkName(key, `toOptions.key of schedule "${id}"`)
}

function keyIn(options: Json | undefined): Json | undefined {
  return (options as { readonly [name: string]: Json } | undefined)?.key
}

function without(options: Json | undefined, name: string): Json | undefined {
  const rest = { ...(options as { readonly [name: string]: Json }) }
  delete rest[name]
  return Object.keys(rest).length === 0 ? undefined : rest
}

function unknown(id: string, name: string, known: readonly string[]) {
  const there = known.length === 0 ? 'no sinks are configured' : `there are ${known.join(', ')}`
  return failure('SINK_UNKNOWN', `schedule "${id}": there is no sink "${name}"; ${there}`)
}

function invalid(id: string, problem: string) {
  return failure('OPTION_INVALID', `schedule "${id}": ${problem}`)
}
