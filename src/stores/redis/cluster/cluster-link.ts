/**
 * A cluster of `@redis/client`. One that the user brought is used as it is. One of our own gives a node up that cannot be
 * reached, and looks for the masters again, from the nodes that it was given: a client that connected while a master was gone
 * would otherwise wait for that one for ever, and never hear of the replica in its place.
 */
import type { Clock } from '../../../core/clock.js'
import { inTime } from '../../../core/connection/in-time.js'
import { type ClientErrors, hearErrors } from '../connection/client-errors.js'
import type { Link, NodeRedisCluster, Subscription } from '../connection/driver.js'
import { errorWord } from '../connection/errors.js'
import { CONNECT_MS } from '../connection/node-redis-link.js'
import { slotOfKey } from './slots.js'

/** After so many commands for one shard in a row that could not be sent, or whose connection broke, masters are looked for. */
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
  /** By shard: the others may well be served meanwhile. */
  readonly #failures = new Map<string, number>()
  #looking: Promise<boolean> | undefined
  #closed = false
  /** Ends each client that was replaced and may still have commands in flight. */
  readonly #farewells = new Set<() => void>()
  #listenAgain: () => Promise<void> = async () => {}

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
    let [listener, ended]: [NodeRedisCluster | undefined, boolean] = [undefined, false]
    this.#listenAgain = async () => {
      const fresh = this.#cluster.duplicate()
      hearErrors(fresh)
      await inTime(this.#clock, CONNECT_MS, listenWith(fresh, channel, heard)).catch((error: unknown) => {
        fresh.destroy()
        throw error
      })
      if (ended) return void fresh.destroy()
      listener?.destroy()
      listener = fresh
      gap()
    }
    await this.#listenAgain()
    return {
      renew: () => void this.#listenAgain().catch(() => {}),
      end() {
        ended = true
        listener?.destroy()
      },
    }
  }

  close(): void {
    this.#closed = true
    for (const end of this.#farewells) end()
    if (this.#owned && this.#cluster.isOpen) this.#cluster.destroy()
  }

  /** Errors that the server itself answered are no reason to doubt the connection. */
  async #watched<Answer>(key: string, send: (cluster: NodeRedisCluster) => Promise<Answer>): Promise<Answer> {
    try {
      const result = await send(this.#cluster)
      if (this.#failures.size > 0) this.#failures.delete(key)
      return result
    } catch (error) {
      // Its node was given up, so it was not sent. The node that has its place now may take it.
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

  /** Whether there are new masters. Concurrent callers share one look. */
  #lookAgain(): Promise<boolean> {
    if (!this.#owned || this.#closed) return Promise.resolve(false)
    this.#looking ??= this.#replaceCluster().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #replaceCluster(): Promise<boolean> {
    const [former, fresh] = [this.#cluster, this.#cluster.duplicate()]
    hearErrors(fresh)
    try {
      await inTime(this.#clock, CONNECT_MS, fresh.connect())
    } catch {
      fresh.destroy()
      // No node answers: the next command that fails looks again.
      return false
    }
    this.#cluster = fresh
    this.#failures.clear()
    this.#dismiss(former)
    if (this.#closed) fresh.destroy()
    // Without hints things only take longer: the next look listens again, too.
    else void this.#listenAgain().catch(() => {})
    return !this.#closed
  }

  /** Commands in flight there may still be answered. */
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

async function listenWith(cluster: NodeRedisCluster, channel: string, heard: (message: string) => void): Promise<void> {
  await cluster.connect()
  await cluster.subscribe(channel, heard)
}

/** Both over the same connection, one behind the other. */
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
    // The slot may have moved: a command that is sent the usual way makes the client look.
    await cluster.sendCommand(key, false, ['EXISTS', key]).catch(() => {})
    // A master that no longer has the slot has done nothing.
    if (errorWord(error) === 'MOVED') return toMaster()
    throw error
  }
}

function isGivenUp(error: unknown): boolean {
  return error instanceof Error && /^The client is closed/.test(error.message)
}
