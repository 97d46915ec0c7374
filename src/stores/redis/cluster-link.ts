/**
 * A cluster of `@redis/client`. One that the user brought is used as it is. One of our own gives a node up that cannot be
 * reached, and looks for the masters anew, from the nodes that it was given: whoever set out while a master was gone would
 * otherwise wait for that one for ever, and never hear of the replica in its place.
 */
import type { Clock } from '../../core/clock.js'
import type { Link, NodeRedisCluster } from './clients.js'
import { errorWord } from './connection-errors.js'
import { type Heard, hearErrors } from './hear-errors.js'
import { slotOfKey } from './slots.js'

/** After so many commands for one shard in a row that could not be sent, or whose connection broke, masters are looked for. */
const PATIENCE = 3
/** How long what is under way on the old connections may still be answered. */
const FAREWELL_MS = 5_000

export class ClusterLink implements Link {
  readonly isCluster = true
  readonly keepsOrder = true
  readonly heard: Heard
  readonly #owned: boolean
  readonly #clock: Clock
  #cluster: NodeRedisCluster
  /** By shard: the others may well be served meanwhile. */
  readonly #failures = new Map<string, number>()
  #looking = false
  #closed = false
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

  abandon(): void {
    this.#cluster.destroy()
  }

  send(key: string, args: readonly string[]): Promise<unknown> {
    return this.#watched(key, this.#cluster.sendCommand(key, false, [...args]))
  }

  sendBoth(key: string, first: readonly string[], second: readonly string[]): Promise<readonly [unknown, unknown]> {
    return this.#watched(key, this.#sendBoth(this.#cluster, key, first, second))
  }

  async #sendBoth(
    cluster: NodeRedisCluster,
    key: string,
    first: readonly string[],
    second: readonly string[],
  ): Promise<readonly [unknown, unknown]> {
    const node = cluster.slots[slotOfKey(key)]?.master
    try {
      if (node === undefined) throw new Error('no master has this slot')
      const client = await cluster.nodeClient(node)
      return await Promise.all([client.sendCommand(first), client.sendCommand(second)])
    } catch (error) {
      // The slot may have moved: a command that is sent the usual way makes the client look.
      await cluster.sendCommand(key, false, ['EXISTS', key]).catch(() => {})
      throw error
    }
  }

  async listen(channel: string, heard: (message: string) => void, gap: () => void): Promise<() => void> {
    let listener: NodeRedisCluster | undefined
    this.#listenAgain = async () => {
      const former = listener
      listener = this.#cluster.duplicate()
      hearErrors(listener)
      await listener.connect()
      await listener.subscribe(channel, heard)
      former?.destroy()
      gap()
    }
    await this.#listenAgain()
    return () => listener?.destroy()
  }

  close(): void {
    this.#closed = true
    if (this.#owned && this.#cluster.isOpen) this.#cluster.destroy()
  }

  /** Errors that the server itself answered are no reason to doubt the connection. */
  async #watched<Answer>(key: string, answer: Promise<Answer>): Promise<Answer> {
    try {
      const result = await answer
      if (this.#failures.size > 0) this.#failures.delete(key)
      return result
    } catch (error) {
      const failures = (this.#failures.get(key) ?? 0) + (errorWord(error) === undefined ? 1 : 0)
      this.#failures.set(key, failures)
      if (failures >= PATIENCE && this.#owned && !this.#looking && !this.#closed) void this.#lookAgain()
      throw error
    }
  }

  async #lookAgain(): Promise<void> {
    this.#looking = true
    const [former, fresh] = [this.#cluster, this.#cluster.duplicate()]
    hearErrors(fresh)
    try {
      await fresh.connect()
      if (this.#closed) return fresh.destroy() as undefined
      this.#cluster = fresh
      this.#failures.clear()
      this.#clock.after(FAREWELL_MS, () => former.destroy())
      await this.#listenAgain()
    } catch {
      // Nobody answers: the next command that fails looks again.
    } finally {
      this.#looking = false
    }
  }
}
