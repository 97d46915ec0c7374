/**
 * A cluster client of `@redis/client`. A client that the user brought is used as it is. Our own client is replaced when a
 * node stays unreachable: a fresh one finds the masters from the configured nodes. A client that connected while a master
 * was down would wait for that master for ever, and never learn of the replica that was promoted.
 */
import type { Clock } from '../../../core/clock.js'
import { type ClientErrors, hearErrors } from '../connection/client-errors.js'
import type { Link, NodeRedisCluster, Subscription } from '../connection/driver.js'
import { connectedDuplicate, listening } from '../connection/duplicates.js'
import { errorWord } from '../connection/errors.js'
import { slotOfKey } from './slots.js'

/** How many commands for one shard must fail in a row, unsent or with a broken connection, before the client is replaced. */
const PATIENCE = 3
/** How long commands in flight on the old connections may still be answered. */
const FAREWELL_MS = 5_000

export class ClusterLink implements Link {
  readonly isCluster = true
  readonly keepsOrder = true
  readonly heard: ClientErrors
  readonly #owned: boolean
  readonly #clock: Clock
  #cluster: NodeRedisCluster
  /** By shard, because the other shards may be served meanwhile. */
  readonly #failures = new Map<string, number>()
  #looking: Promise<boolean> | undefined
  #closed = false
  /** Each ends a replaced client that may still have commands in flight. */
  readonly #farewells = new Set<() => void>()
  #subscription: Subscription | undefined

  constructor(cluster: NodeRedisCluster, owned: boolean, clock: Clock) {
    this.#cluster = cluster
    this.#owned = owned
    this.#clock = clock
    this.heard = hearErrors(cluster)
  }

  async open(): Promise<void> {
    if (!this.#cluster.isOpen) await this.#cluster.connect()
  }

  unref(): void {}

  abandon(): void {
    this.#cluster.destroy()
  }

  send(key: string, args: readonly string[]): Promise<unknown> {
    return this.#watched(key, (cluster) => cluster.sendCommand(key, false, [...args]))
  }

  sendBoth(key: string, first: readonly string[], second: readonly string[]): Promise<readonly [unknown, unknown]> {
    return this.#watched(key, (cluster) => sendBoth(cluster, key, first, second))
  }

  doubt(key: string): void {
    this.#failed(key)
  }

  async listen(channel: string, heard: (message: string) => void, gap: () => void): Promise<Subscription> {
    const open = () => connectedDuplicate(this.#cluster, this.#clock, (own) => own.subscribe(channel, heard))
    this.#subscription = await listening(open, gap)
    return this.#subscription
  }

  close(): void {
    this.#closed = true
    for (const end of this.#farewells) end()
    if (this.#owned && this.#cluster.isOpen) this.#cluster.destroy()
  }

  /** An error that the server answered does not count as a failure of the connection. */
  async #watched<Answer>(key: string, send: (cluster: NodeRedisCluster) => Promise<Answer>): Promise<Answer> {
    try {
      const result = await send(this.#cluster)
      if (this.#failures.size > 0) this.#failures.delete(key)
      return result
    } catch (error) {
      // The client of its node was closed, so the command was not sent. The node's successor can take it.
      if (isGivenUp(error) && (await this.#lookAgain())) return await send(this.#cluster)
      if (errorWord(error) === undefined) this.#failed(key)
      throw error
    }
  }

  #failed(key: string): void {
    const failures = (this.#failures.get(key) ?? 0) + 1
    this.#failures.set(key, failures)
    if (failures >= PATIENCE) void this.#lookAgain()
  }

  /** Answers whether the client was replaced. Concurrent callers share one replacement. */
  #lookAgain(): Promise<boolean> {
    if (!this.#owned || this.#closed) return Promise.resolve(false)
    this.#looking ??= this.#replaceCluster().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #replaceCluster(): Promise<boolean> {
    const former = this.#cluster
    // No node answers: the next command that fails tries again.
    const fresh = await connectedDuplicate(former, this.#clock).catch(() => undefined)
    if (fresh === undefined) return false
    this.#cluster = fresh
    this.#failures.clear()
    this.#dismiss(former)
    if (this.#closed) fresh.destroy()
    // Without hints, changes are only noticed later: the next replacement subscribes again, too.
    else void this.#subscription?.renew()
    return !this.#closed
  }

  /** Ends a replaced client once its commands in flight had time to be answered. */
  #dismiss(cluster: NodeRedisCluster): void {
    const end = () => {
      cancel()
      this.#farewells.delete(end)
      cluster.destroy()
    }
    const cancel = this.#clock.after(FAREWELL_MS, end)
    this.#farewells.add(end)
  }
}

/** Sends both over the same connection, in this order. */
async function sendBoth(
  cluster: NodeRedisCluster,
  key: string,
  first: readonly string[],
  second: readonly string[],
): Promise<readonly [unknown, unknown]> {
  const toMaster = async () => {
    const node = cluster.slots[slotOfKey(key)]?.master
    if (node === undefined) throw new Error('no master has this slot')
    const client = await cluster.nodeClient(node)
    return await Promise.all([client.sendCommand(first), client.sendCommand(second)])
  }
  try {
    return await toMaster()
  } catch (error) {
    // The slot may have moved: any command that is routed the usual way makes the client refresh its slots.
    await cluster.sendCommand(key, false, ['EXISTS', key]).catch(() => {})
    // A master that no longer has the slot has executed nothing, so a repetition is safe.
    if (errorWord(error) === 'MOVED') return toMaster()
    throw error
  }
}

function isGivenUp(error: unknown): boolean {
  return error instanceof Error && /^The client is closed/.test(error.message)
}
