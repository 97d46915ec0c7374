/**
 * Puts of single schedules that come at the same time share the scripts that read and write: each by itself would have the
 * server set up as much as a thousand.
 *
 * - They share within a shard: what goes wrong with another is not theirs to hear of.
 * - Two that speak of the same schedule do not share: the second builds on what the first has made.
 * - A put that throws because of what it asks for has written nothing, but neither have those who shared with it: then each
 *   is done by itself, and only the one that was wrong hears of it.
 */
import { BelfryError } from '../../../core/errors.js'
import type { PutResult, ScheduleWrite } from '../../../core/store.js'
import { shardOf } from '../cluster/shards.js'
import { SharedCalls } from '../connection/coalesced-writes.js'
import type { Server } from '../connection/server.js'
import { putSchedules } from './put.js'

const SHARING = { most: 50, atOnce: 2 }

type Put = { readonly result: PutResult | undefined } | { readonly error: unknown }

export class PutCalls {
  readonly #server: Server
  /** By shard. */
  readonly #calls: SharedCalls<ScheduleWrite, Put>[] = []

  constructor(server: Server) {
    this.#server = server
  }

  async put(writes: readonly ScheduleWrite[]): Promise<readonly PutResult[]> {
    const [only] = writes
    if (only === undefined || writes.length > 1) return putSchedules(this.#server, writes)
    const shard = shardOf(only.id, this.#server.shards)
    this.#calls[shard] ??= new SharedCalls((all) => this.#putInTurn(all), SHARING)
    const put = await this.#calls[shard].call(only)
    if ('error' in put) throw put.error
    return put.result === undefined ? [] : [put.result]
  }

  async #putInTurn(writes: readonly ScheduleWrite[]): Promise<Put[]> {
    const puts = new Map<ScheduleWrite, Put>()
    for (let left = writes; left.length > 0; ) {
      const first = new Map<string, ScheduleWrite>()
      const later: ScheduleWrite[] = []
      for (const write of left) {
        if (first.has(write.id)) later.push(write)
        else first.set(write.id, write)
      }
      const together = [...first.values()]
      const answers = await this.#putTogether(together)
      for (const [at, write] of together.entries()) puts.set(write, answers[at] ?? { result: undefined })
      left = later
    }
    return writes.map((write) => puts.get(write) ?? { result: undefined })
  }

  async #putTogether(writes: readonly ScheduleWrite[]): Promise<Put[]> {
    try {
      return (await putSchedules(this.#server, writes)).map((result) => ({ result }))
    } catch (error) {
      const isOfTheStore = error instanceof BelfryError && error.code.startsWith('STORE_')
      if (writes.length === 1 || isOfTheStore) return writes.map(() => ({ error }))
      return (await Promise.all(writes.map((write) => this.#putTogether([write])))).flat()
    }
  }
}
