/**
 * Reaches a cluster over a client of `@redis/client`. A client that the user passed in is never replaced. The store's
 * own client is replaced when a node stays unreachable: a new client finds the masters from the configured nodes. A
 * client that connected while a master was down would wait for that master for ever, and never learn of the promoted
 * replica.
 */
import type { Clock } from '../../../core/clock.js'
import { type ClientErrors, hearErrors } from '../connection/client-errors.js'
import type { Link, NodeRedisCluster, Subscription } from '../connection/driver.js'
import { connectedDuplicate, listening } from '../connection/duplicates.js'
import { errorWord } from '../connection/errors.js'
import { slotOfKey } from './slots.js'

/** How many commands for one shard must fail in a row, unsent or with a broken connection, before the client is replaced. */
const PATIENCE = 3
/** How long a replaced client stays open, so that its commands in flight can still be answered. */
const FAREWELL_MS = 5_000

export class ClusterLink implements Link {
  readonly isCluster = true
  readonly keepsOrder = true
  readonly heard: ClientErrors
  readonly #owned: boolean
  readonly #clock: Clock
  #cluster: NodeRedisCluster
  /** Failures in a row, counted for each shard, because the other shards may work meanwhile. */
  readonly #failures = new Map<string, number>()
  #looking: Promise<boolean> | undefined
  #closed = false
  /** Each function closes a replaced client that may still have commands in flight. */
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

  /** Sends a command and counts failures of the connection. An error that the server answered is not such a failure. */
  async #watched<Answer>(key: string, send: (cluster: NodeRedisCluster) => Promise<Answer>): Promise<Answer> {
    try {
      const result = await send(this.#cluster)
      if (this.#failures.size > 0) this.#failures.delete(key)
      return result
    } catch (error) {
      // The client has closed its connection to this node, so the command was not sent. If the client can be replaced,
      // the command goes to the node's new master.
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

  /** Replaces the store's own client. Returns whether it was replaced. Concurrent callers share one replacement. */
  #lookAgain(): Promise<boolean> {
    if (!this.#owned || this.#closed) return Promise.resolve(false)
    this.#looking ??= this.#replaceCluster().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #replaceCluster(): Promise<boolean> {
    const former = this.#cluster
    // If no node answers, the next command that fails tries again.
    const fresh = await connectedDuplicate(former, this.#clock).catch(() => undefined)
    if (fresh === undefined) return false
    this.#cluster = fresh
    this.#failures.clear()
    this.#dismiss(former)
    if (this.#closed) fresh.destroy()
    // If this subscription fails, changes are noticed later, by polls. The next replacement subscribes again.
    else void this.#subscription?.renew()
    return !this.#closed
  }

  /** Closes a replaced client after its commands in flight have had time to be answered. */
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
    // The slot may have moved. Any command that the client routes itself makes it refresh its slot map.
    await cluster.sendCommand(key, false, ['EXISTS', key]).catch(() => {})
    // MOVED means that the former master has executed nothing, so a second try is safe.
    if (errorWord(error) === 'MOVED') return toMaster()
    throw error
  }
}

function isGivenUp(error: unknown): boolean {
  return error instanceof Error && /^The client is closed/.test(error.message)
}
