/** Writes down which sinks this process cannot reach, for those who ask another process (`core/outage.ts`). */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../core/clock.js'
import type { InstanceInfo } from '../../core/instance.js'
import { OUTAGE_KIND, OUTAGE_REPEAT_MS, OUTAGE_TTL_MS, outageBody } from '../../core/outage.js'
import type { Store } from '../../core/store.js'
import type { Events } from '../events.js'
import type { Health } from '../health.js'
import { Loop } from '../loop.js'
import type { SinkOutage } from './sink-health.js'

export interface OutageNotesOptions {
  readonly store: Store
  readonly clock: Clock
  readonly events: Events
  readonly health: Health
  readonly outages: () => readonly SinkOutage[]
  readonly describe: () => Pick<InstanceInfo, 'host' | 'pid'>
}

/** Nothing is looked for in between: events tell of every change. */
const IDLE_MS = 3_600_000

export class OutageNotes {
  readonly #options: OutageNotesOptions
  /** Not the instance's id, which changes when the instance joins anew. */
  readonly #id = randomUUID()
  readonly #loop: Loop
  #isWritten = false
  #forget: readonly (() => void)[] = []

  constructor(options: OutageNotesOptions) {
    this.#options = options
    const { clock, health } = options
    this.#loop = new Loop({ name: 'sink outages', clock, health, step: () => this.#tell() })
  }

  start(): void {
    const { events } = this.#options
    const wake = () => this.#loop.wake()
    this.#forget = [events.on('sink:unreachable', wake), events.on('sink:recovered', wake)]
    this.#loop.start()
  }

  /** A process that stops cannot tell any more how the sink is. */
  async stop(): Promise<void> {
    for (const forget of this.#forget) forget()
    await this.#loop.stop()
    await this.#remove()
  }

  async #tell(): Promise<number> {
    const { store, clock, outages, describe } = this.#options
    const now = clock.now()
    const notes = outages().map(({ sink, since, error }) => ({
      sink,
      forMs: Math.max(now - since, 0),
      error: error.message,
    }))
    if (notes.length === 0) {
      await this.#remove()
      return IDLE_MS
    }
    const { host, pid } = describe()
    // Before the answer: a record whose answer was lost is there all the same.
    this.#isWritten = true
    const body = outageBody(`${host}:${pid}`, notes)
    await store.records.put({ kind: OUTAGE_KIND, id: this.#id, body, ttlMs: OUTAGE_TTL_MS })
    return OUTAGE_REPEAT_MS
  }

  async #remove(): Promise<void> {
    if (!this.#isWritten) return
    await this.#options.store.records.remove(OUTAGE_KIND, this.#id)
    this.#isWritten = false
  }
}
