/**
 * Caches the number of partitions of each topic, or the reason to refuse its messages. Each topic has its own lookup,
 * which all waiting messages share, and a failure is cached for 5 s. So a missing topic costs one lookup every 5 s, and
 * delays no message of another topic.
 */
import type { Clock } from '../../core/clock.js'
import type { Undelivered } from '../../core/sink.js'
import type { Link } from '../broker-link.js'
import type { KafkaClient } from './client.js'
import { type ErrorKind, errorKind, undelivered } from './kafka-errors.js'

export type Found =
  /** `partitions` is undefined if the user's own producer chooses them. */
  { readonly partitions: number | undefined } | { readonly refused: Undelivered }

interface Known {
  readonly found: Found
  readonly at: number
}

/** How long a failure is cached. */
const REFUSED_MS = 5_000
/** A topic that is missing for less than this is retried: it may be new, or a broker may have just started. */
const MISSING_MS = 5_000
/** The number of partitions is refreshed after this long, because a topic may get more. */
const FOUND_MS = 60_000
const MOST_TOPICS = 10_000

export class Topics {
  readonly #link: Link<KafkaClient>
  readonly #clock: Clock
  readonly #known = new Map<string, Known>()
  readonly #lookups = new Map<string, Promise<Found>>()
  /** When a lookup first found the topic missing; removed when a lookup finds it. */
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

  /**
   * The outcome of messages that a broker refused because of their topic. A final refusal also applies to later messages.
   */
  refuse(topic: string, error: unknown, kind: ErrorKind): Undelivered {
    if (kind === 'topic') return this.#remember(topic, undelivered(error, kind, topic))
    // The broker may not know the topic yet: the next message looks it up again.
    this.#known.delete(topic)
    return undelivered(error, kind, topic)
  }

  #lookUp(topic: string): Promise<Found> {
    const inFlight = this.#lookups.get(topic)
    if (inFlight !== undefined) return inFlight
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
    const kind = errorKind(error)
    const outcome = undelivered(error, kind, topic)
    if (kind === 'topic') return this.#remember(topic, outcome)
    if (kind === 'missing') {
      const now = this.#clock.monotonic()
      const since = this.#missingSince.get(topic) ?? now
      this.#missingSince.set(topic, since)
      const isFinal = now - since >= MISSING_MS
      return this.#remember(topic, { ...outcome, ...(isFinal ? { retryable: false } : { untried: true }) })
    }
    if (kind === 'unanswered' && client?.recoversItself === false) this.#link.lose(client)
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
