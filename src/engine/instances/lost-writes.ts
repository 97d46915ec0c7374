/**
 * Notices that the store has lost its last writes, by a failover to a server that lacks them or by a restored backup: it
 * knows an older beat of this instance than the last one that it acknowledged. Nothing can be done about it here, so it is
 * logged, and recorded for `belfry doctor`.
 */
import { randomUUID } from 'node:crypto'
import type { BeatResult, InstanceInfo } from '../../core/instances/instance.js'
import type { Logger } from '../../core/logger.js'
import { LOST_WRITES_KIND, LOST_WRITES_TTL_MS, lostWritesBody } from '../../core/records/lost-writes.js'
import type { RecordWrite } from '../../core/records/record.js'
import type { Store } from '../../core/store.js'
import { isoText } from '../../time/instant.js'

export interface LostWritesOptions {
  readonly store: Store
  readonly log: Logger
  readonly describe: () => Pick<InstanceInfo, 'host' | 'pid'>
}

export class LostWrites {
  readonly #options: LostWritesOptions
  /** The store's time in its answer to the last join or beat. */
  #acknowledged = Number.NEGATIVE_INFINITY
  /** What is not recorded yet. */
  #unrecorded: RecordWrite | undefined

  constructor(options: LostWritesOptions) {
    this.#options = options
  }

  joined(now: number): void {
    this.#acknowledged = now
  }

  /** `expected` is the store's time as it was known before the beat. */
  beaten({ lastBeatAt, now }: Pick<BeatResult, 'lastBeatAt' | 'now'>, expected: number): void {
    const acknowledged = this.#acknowledged
    this.#acknowledged = now
    if (lastBeatAt !== undefined && lastBeatAt < acknowledged) {
      this.#report(lastBeatAt, Math.round(Math.max(expected, acknowledged)))
    }
    if (this.#unrecorded !== undefined) void this.#record(this.#unrecorded)
  }

  #report(from: number, until: number): void {
    const { log, describe } = this.#options
    const { host, pid } = describe()
    const times = { from: isoText(from), until: isoText(until) }
    log.warn(
      times,
      `the store has lost writes between ${times.from} and ${times.until}, by a failover or a restored backup: see belfry doctor`,
    )
    const body = lostWritesBody({ from, until, process: `${host}:${pid}` })
    this.#unrecorded = { kind: LOST_WRITES_KIND, id: randomUUID(), body, ttlMs: LOST_WRITES_TTL_MS }
  }

  /** A failed write is repeated with the next beat. */
  async #record(write: RecordWrite): Promise<void> {
    try {
      await this.#options.store.records.put(write)
      if (this.#unrecorded === write) this.#unrecorded = undefined
    } catch (err) {
      this.#options.log.debug({ err }, 'the loss of writes is not recorded yet')
    }
  }
}
