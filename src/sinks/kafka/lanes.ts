/** Messages on their way to Kafka, by topic and partition: each partition has a lane of its own. */
import type { Clock } from '../../core/clock.js'
import { DELIVERED } from '../../core/sink.js'
import type { Link } from '../link.js'
import type { KafkaClient } from './client.js'
import { type Item, Lane, type Pulse } from './lane.js'
import { partitionOf } from './partition.js'
import { Topics } from './topics.js'

/** A client that is younger knows all that a new one would know. */
const RENEWED_AFTER_MS = 2_000
const MOST_IDLE = 1_000
/** Events that were written although they had been given up. */
const MOST_LATE = 10_000

export class Lanes {
  readonly #link: Link<KafkaClient>
  readonly #clock: Clock
  readonly #topics: Topics
  readonly #lanes = new Map<string, Lane>()
  readonly #pulse: Pulse
  readonly #late = new Set<string>()
  #replacedAt = Number.NEGATIVE_INFINITY

  constructor(link: Link<KafkaClient>, clock: Clock) {
    this.#link = link
    this.#clock = clock
    this.#topics = new Topics(link, clock)
    this.#pulse = {
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
    const lanes = new Map<Lane, Item[]>()
    await new Promise<void>((resolve) => {
      let left = items.length
      for (const item of items) {
        const { key } = item.message
        const lane = this.#lane(topic, partitions === undefined ? undefined : partitionOf(key, partitions), key)
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
        const those = lanes.get(lane)
        if (those === undefined) lanes.set(lane, [counted])
        else those.push(counted)
      }
      for (const [lane, those] of lanes) lane.add(those)
    })
  }

  #lane(topic: string, partition: number | undefined, key: string): Lane {
    // A producer that chooses partitions itself keeps a key in one: so a key is as good as a partition.
    const name = partition === undefined ? `${topic} ${key}` : `${topic} ${partition}`
    const known = this.#lanes.get(name)
    if (known !== undefined) return known
    if (this.#lanes.size >= MOST_IDLE) for (const [each, lane] of this.#lanes) if (lane.isIdle) this.#lanes.delete(each)
    const options = { topic, partition, link: this.#link, topics: this.#topics, clock: this.#clock, pulse: this.#pulse }
    const lane = new Lane(options)
    this.#lanes.set(name, lane)
    return lane
  }

  /** Acknowledged when nobody waited for it any more: it need not be written again. */
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
    if (now - this.#replacedAt < RENEWED_AFTER_MS) return
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
