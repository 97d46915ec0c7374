/**
 * What is known of topics: how many partitions they have, or why nothing can be written to them. Each topic is looked up by
 * itself, once for all messages that wait, and a failure is remembered for a moment: so a topic that does not exist costs
 * one lookup now and then, and no message of another topic waits for it.
 */
import type { Clock } from '../../core/clock.js'
import type { Undelivered } from '../../core/sink.js'
import type { Link } from '../link.js'
import type { KafkaClient } from './client.js'
import { type Trouble, troubleOf, undelivered } from './trouble.js'

export type Found =
  /** `partitions` is undefined where a producer of the user's chooses them. */
  { readonly partitions: number | undefined } | { readonly refused: Undelivered }

interface Known {
  readonly found: Found
  readonly at: number
}

/** How long a failure is remembered. */
const REFUSED_MS = 5_000
/** A topic may be new, or a broker may have just started: what is missing for less long is tried again. */
const MISSING_MS = 5_000
/** Topics may get more partitions. */
const FOUND_MS = 60_000
const MOST_TOPICS = 10_000

export class Topics {
  readonly #link: Link<KafkaClient>
  readonly #clock: Clock
  readonly #known = new Map<string, Known>()
  readonly #lookups = new Map<string, Promise<Found>>()
  /** Since when a topic has been missing each time that it was looked up. */
  readonly #missingSince = new Map<string, number>()

  constructor(link: Link<KafkaClient>, clock: Clock) {
    this.#link = link
    this.#clock = clock
  }

  async find(topic: string): Promise<Found> {
    const known = this.#known.get(topic)
    const ageMs = known === undefined ? 0 : this.#clock.monotonic() - known.at
    if (known === undefined) return this.#lookUp(topic)
    if ('refused' in known.found) return ageMs < REFUSED_MS ? known.found : this.#lookUp(topic)
    if (ageMs >= FOUND_MS) void this.#lookUp(topic)
    return known.found
  }

  /** A broker has refused messages because of their topic: what it comes to for them, and for those that follow. */
  refuse(topic: string, error: unknown, trouble: Trouble): Undelivered {
    if (trouble === 'topic') return this.#remember(topic, undelivered(error, trouble, topic))
    // The broker may not know of it yet: the next message looks it up.
    this.#known.delete(topic)
    return undelivered(error, trouble, topic)
  }

  #lookUp(topic: string): Promise<Found> {
    const underWay = this.#lookups.get(topic)
    if (underWay !== undefined) return underWay
    const lookup = this.#ask(topic).finally(() => this.#lookups.delete(topic))
    this.#lookups.set(topic, lookup)
    return lookup
  }

  async #ask(topic: string): Promise<Found> {
    let client: KafkaClient | undefined
    try {
      client = await this.#link.get()
      const partitions = await client.partitions(topic)
      if (partitions === 0) throw Object.assign(new Error('it has no partitions'), { code: 3 })
      this.#missingSince.delete(topic)
      const found = { partitions }
      this.#set(topic, found)
      return found
    } catch (error) {
      return { refused: this.#failed(topic, error, client) }
    }
  }

  #failed(topic: string, error: unknown, client: KafkaClient | undefined): Undelivered {
    const trouble = troubleOf(error)
    const outcome = undelivered(error, trouble, topic)
    if (trouble === 'topic') return this.#remember(topic, outcome)
    if (trouble === 'missing') {
      const now = this.#clock.monotonic()
      const since = this.#missingSince.get(topic) ?? now
      this.#missingSince.set(topic, since)
      const isFinal = now - since >= MISSING_MS
      return this.#remember(topic, { ...outcome, ...(isFinal ? { retryable: false } : { untried: true }) })
    }
    if (trouble === 'unanswered' && client?.healsItself === false) this.#link.lose(client)
    return outcome
  }

  #remember(topic: string, outcome: Undelivered): Undelivered {
    this.#set(topic, { refused: outcome })
    return outcome
  }

  #set(topic: string, found: Found): void {
    if (this.#known.size >= MOST_TOPICS) {
      this.#known.clear()
      this.#missingSince.clear()
    }
    this.#known.set(topic, { found, at: this.#clock.monotonic() })
  }
}
