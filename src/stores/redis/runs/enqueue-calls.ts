/**
 * Runs that are enqueued one by one at the same time share a script, if they belong into the same shard: what goes wrong
 * with another is not theirs to hear of. They are made in the order in which they came, so each meets those before it, as
 * it would have by itself.
 */
import type { NewRun } from '../../../core/run.js'
import type { EnqueueResult } from '../../../core/store.js'
import { SharedCalls } from '../connection/coalesced-writes.js'
import type { Server } from '../connection/server.js'
import { enqueueIn, enqueueRuns, homeFor } from './enqueue.js'

const SHARING = { most: 50, atOnce: 2 }

export class EnqueueCalls {
  readonly #server: Server
  /** By shard. */
  readonly #calls: SharedCalls<NewRun, EnqueueResult>[] = []

  constructor(server: Server) {
    this.#server = server
  }

  async enqueue(runs: readonly NewRun[], tx: unknown): Promise<readonly EnqueueResult[]> {
    const [only] = runs
    if (tx !== undefined || only === undefined || runs.length > 1) return enqueueRuns(this.#server, runs, tx)
    const shard = homeFor(this.#server, only)
    this.#calls[shard] ??= new SharedCalls((all) => enqueueIn(this.#server, shard, all), SHARING)
    return [await this.#calls[shard].call(only)]
  }
}
