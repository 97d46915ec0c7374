/** Distributes messages to one queue per partition. */
import type { Clock } from '../../core/clock.js'
import { DELIVERED } from '../../core/sink.js'
import type { Link } from '../broker-link.js'
import type { KafkaClient } from './client.js'
import { partitionOf } from './partition.js'
import { type Item, PartitionQueue, type SharedState } from './partition-queue.js'
import { Topics } from './topics.js'

/** A client younger than this is not replaced, because a new one would fail too. */
const REPLACE_AFTER_MS = 2_000
const MOST_IDLE = 1_000
/** The most events that were written late to remember. */
const MOST_LATE = 10_000

export class PartitionQueues {
  readonly #link: Link<KafkaClient>
  readonly #clock: Clock
  readonly #topics: Topics
  readonly #queues = new Map<string, PartitionQueue>()
  readonly #shared: SharedState
  readonly #late = new Set<string>()
  #replacedAt = Number.NEGATIVE_INFINITY

  constructor(link: Link<KafkaClient>, clock: Clock) {
    this.#link = link
    this.#clock = clock
    this.#topics = new Topics(link, clock)
    this.#shared = {
      answered: Number.NEGATIVE_INFINITY,
      replace: (client) => this.#replace(client),
      writtenLate: (topic, id) => this.#remember(topic, id),
    }
  }

  /** Resolves once every item has its outcome. */
  async deliver(topic: string, all: readonly Item[]): Promise<void> {
    const items = all.filter((item) => !this.#wasWritten(topic, item))
    if (items.length === 0) return
    const found = await this.#topics.find(topic)
    if ('refused' in found) {
      for (const { settle } of items) settle(found.refused)
      return
    }
    const { partitions } = found
    const queues = new Map<PartitionQueue, Item[]>()
    await new Promise<void>((resolve) => {
      let left = items.length
      for (const item of items) {
        const { key } = item.message
        const queue = this.#queue(topic, partitions === undefined ? undefined : partitionOf(key, partitions), key)
        const settled = once(() => {
          left -= 1
          if (left === 0) resolve()
        })
        const counted: Item = {
          ...item,
          settle: (outcome) => {
            item.settle(outcome)
            settled()
          },
        }
        const those = queues.get(queue)
        if (those === undefined) queues.set(queue, [counted])
        else those.push(counted)
      }
      for (const [queue, those] of queues) queue.add(those)
    })
  }

  #queue(topic: string, partition: number | undefined, key: string): PartitionQueue {
    // A producer that chooses partitions itself puts all messages of a key into one, so the key stands for the
    // partition.
    const name = partition === undefined ? `${topic} ${key}` : `${topic} ${partition}`
    const known = this.#queues.get(name)
    if (known !== undefined) return known
    if (this.#queues.size >= MOST_IDLE)
      for (const [each, queue] of this.#queues) if (queue.isIdle) this.#queues.delete(each)
    const options = {
      topic,
      partition,
      link: this.#link,
      topics: this.#topics,
      clock: this.#clock,
      shared: this.#shared,
    }
    const queue = new PartitionQueue(options)
    this.#queues.set(name, queue)
    return queue
  }

  /** Settles an event that was acknowledged after it had been given up, so that it is not written again. */
  #wasWritten(topic: string, { id, settle }: Item): boolean {
    const isWritten = this.#late.size > 0 && this.#late.delete(`${topic} ${id}`)
    if (isWritten) settle(DELIVERED)
    return isWritten
  }

  #remember(topic: string, id: string): void {
    if (this.#late.size >= MOST_LATE) this.#late.clear()
    this.#late.add(`${topic} ${id}`)
  }

  #replace(client: KafkaClient): void {
    const now = this.#clock.monotonic()
    if (now - this.#replacedAt < REPLACE_AFTER_MS) return
    this.#replacedAt = now
    this.#link.lose(client)
  }
}

function once(action: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    action()
  }
}
