/** Records which sinks this process cannot reach, so that every process can report them (`core/records/outage.ts`). */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../core/clock.js'
import type { InstanceInfo } from '../../core/instances/instance.js'
import { OUTAGE_KIND, OUTAGE_REPEAT_MS, OUTAGE_TTL_MS, outageBody } from '../../core/records/outage.js'
import type { Store } from '../../core/store.js'
import type { Events } from '../events.js'
import type { Health } from '../health.js'
import { Loop } from '../loop.js'
import type { SinkOutage } from './sink-health.js'

export interface OutageRecordsOptions {
  readonly store: Store
  readonly clock: Clock
  readonly events: Events
  readonly health: Health
  readonly outages: () => readonly SinkOutage[]
  readonly describe: () => Pick<InstanceInfo, 'host' | 'pid'>
}

/** How long the loop sleeps without an outage. Events wake it at every change. */
const IDLE_MS = 3_600_000

export class OutageRecords {
  readonly #options: OutageRecordsOptions
  /** The record's id. The instance's own id is not used, because it changes when the instance rejoins. */
  readonly #id = randomUUID()
  readonly #loop: Loop
  #isWritten = false
  #unsubscribe: readonly (() => void)[] = []

  constructor(options: OutageRecordsOptions) {
    this.#options = options
    const { clock, health } = options
    this.#loop = new Loop({ name: 'sink outages', clock, health, step: () => this.#write() })
  }

  start(): void {
    const { events } = this.#options
    const wake = () => this.#loop.wake()
    this.#unsubscribe = [events.on('sink:unreachable', wake), events.on('sink:recovered', wake)]
    this.#loop.start()
  }

  /** Removes the record: a stopped process knows nothing of its sinks. */
  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    await this.#loop.stop()
    await this.#remove()
  }

  async #write(): Promise<number> {
    const { store, clock, outages, describe } = this.#options
    const now = clock.now()
    const outageList = outages().map(({ sink, since, error }) => ({
      sink,
      forMs: Math.max(now - since, 0),
      error: error.message,
    }))
    if (outageList.length === 0) {
      await this.#remove()
      return IDLE_MS
    }
    const { host, pid } = describe()
    // Set before the call: a put whose reply is lost may have written the record.
    this.#isWritten = true
    const body = outageBody(`${host}:${pid}`, outageList)
    await store.records.put({ kind: OUTAGE_KIND, id: this.#id, body, ttlMs: OUTAGE_TTL_MS })
    return OUTAGE_REPEAT_MS
  }

  async #remove(): Promise<void> {
    if (!this.#isWritten) return
    await this.#options.store.records.remove(OUTAGE_KIND, this.#id)
    this.#isWritten = false
  }
}
