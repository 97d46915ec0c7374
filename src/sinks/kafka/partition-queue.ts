/**
 * The queue of one partition: one request at a time, and no message overtakes one that is being retried.
 *
 * - After a leader change or a broken connection the queue retries the request, first soon and then once a second. Most
 *   failovers end within the time limit, and cost no attempt of a run.
 * - A partition in trouble must not block others, since one call of `deliver` has messages for many. If this partition
 *   writes nothing for 2 s while other partitions answer later requests, the queue gives its messages up, and the engine
 *   retries them. They count as failed, because the cluster is reachable. Until the request ends, new messages are refused
 *   at once. If a slow leader still acknowledges a message, its id is remembered. The retry then counts as delivered, and
 *   nothing is written twice. From then on the queue gives up after 0.5 s, until a message is written.
 * - When no partition gets an answer, the queue waits until the request timeout, because no other partition is held up.
 * - Messages count as written only if the answer names their partition, even if the answer is a success.
 *
 *     idle ──add──▶ sending ──written──▶ idle
 *                      ├──error──▶ pause, and send again        (at most 12 s, or 2 s while others answer)
 *                      └──2 s behind the others──▶ given up ──answer or error──▶ resting (1 s) ──▶ idle
 */
import { type Clock, sleep } from '../../core/clock.js'
import { failure, quote } from '../../core/errors.js'
import { DELIVERED, type Delivery, type Undelivered } from '../../core/sink.js'
import type { Link } from '../broker-link.js'
import type { KafkaClient, KafkaMessage, Written } from './client.js'
import { errorKind, MissingPartition, undelivered } from './kafka-errors.js'
import type { Topics } from './topics.js'

/** A message with the receiver of its outcome. */
export interface Item {
  readonly id: string
  readonly message: KafkaMessage
  readonly bytes: number
  /** Sets the outcome. Later calls are ignored. */
  readonly settle: (outcome: Delivery) => void
  /** False once the caller no longer waits for the outcome. */
  readonly isAwaited: () => boolean
}

export interface PartitionQueueOptions {
  readonly topic: string
  /** Undefined if the user's own producer chooses it. */
  readonly partition: number | undefined
  readonly link: Link<KafkaClient>
  readonly topics: Topics
  readonly clock: Clock
  readonly shared: SharedState
}

export interface SharedState {
  /** When the newest request that was answered began. */
  answered: number
  /** Replaces a client that gets no answers. */
  replace(client: KafkaClient): void
  /** Reports an event that was written after it had been given up. */
  writtenLate(topic: string, id: string): void
}

/** Below the brokers' default limit of about 1 MB for a request. */
const MOST_BYTES = 900_000
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 1_000
/** How long a partition may write nothing while others answer: at first, and after it was given up. */
const BEHIND_MS = { first: 2_000, later: 500 }
const RECHECK_MS = 500
/** How long a request is retried while no partition answers; a failover of Kafka takes about nine seconds. */
const MOST_RETRYING_MS = 12_000
/** How long a partition gets no messages after it was given up. */
const REST_MS = 1_000

export class PartitionQueue {
  readonly #options: PartitionQueueOptions
  #waiting: Item[] = []
  #sending: readonly Item[] = []
  #isWorking = false
  /** When the first failed request began; undefined after a success. */
  #failingSince: number | undefined
  #isGivenUp = false
  /** How long this partition may be behind the others. */
  #behindMs = BEHIND_MS.first
  #restsUntil = Number.NEGATIVE_INFINITY
  /** The outcome of messages added while the partition is given up or resting. */
  #refusal: Undelivered | undefined
  #pauses = 0
  /** The most messages in a request. It is lowered to find an invalid message. */
  #most = Number.POSITIVE_INFINITY

  constructor(options: PartitionQueueOptions) {
    this.#options = options
  }

  get isIdle(): boolean {
    return !this.#isWorking && this.#options.clock.monotonic() >= this.#restsUntil
  }

  add(items: readonly Item[]): void {
    if (this.#isGivenUp || this.#options.clock.monotonic() < this.#restsUntil) {
      const refusal = { ...(this.#refusal ?? this.#silent()), untried: true }
      for (const { settle } of items) settle(refusal)
      return
    }
    this.#waiting.push(...items)
    if (!this.#isWorking) void this.#work()
  }

  async #work(): Promise<void> {
    this.#isWorking = true
    for (let part = this.#take(); part.length > 0; part = this.#take()) {
      this.#sending = part
      await this.#send(part)
      this.#sending = []
    }
    this.#isWorking = false
    if (this.#isGivenUp) this.#rest()
  }

  /** The messages of the next request. Messages that no caller waits for are not sent. */
  #take(): readonly Item[] {
    const part: Item[] = []
    let [at, bytes] = [0, 0]
    for (; at < this.#waiting.length && part.length < this.#most; at += 1) {
      const item = this.#waiting[at] as Item
      if (!item.isAwaited()) item.settle(this.#silent())
      else if (part.length > 0 && bytes + item.bytes > MOST_BYTES) break
      else {
        part.push(item)
        bytes += item.bytes
      }
    }
    this.#waiting = this.#waiting.slice(at)
    return part
  }

  async #send(part: readonly Item[]): Promise<void> {
    const { topic, partition, link, clock, shared } = this.#options
    const begunAt = clock.monotonic()
    this.#failingSince ??= begunAt
    const cancelWatch = this.#watch(this.#behindMs)
    let client: KafkaClient | undefined
    try {
      client = await link.get()
      const messages = part.map(({ message }) => message)
      this.#check(await client.send(topic, partition, messages))
      shared.answered = Math.max(shared.answered, begunAt)
      if (this.#isGivenUp) for (const { id } of part) shared.writtenLate(topic, id)
      this.#endTrouble()
      this.#behindMs = BEHIND_MS.first
      this.#most = Number.POSITIVE_INFINITY
      for (const { settle } of part) settle(DELIVERED)
    } catch (error) {
      await this.#failed(part, error, client)
    } finally {
      cancelWatch()
    }
  }

  /** Throws unless the answer confirms this partition. */
  #check(written: readonly Written[]): void {
    const { topic, partition } = this.#options
    if (written.some((each) => each.topic === topic && each.partition === partition)) return
    throw new MissingPartition(`the answer does not confirm ${this.#name}`)
  }

  async #failed(part: readonly Item[], error: unknown, client: KafkaClient | undefined): Promise<void> {
    const { topic, topics, shared } = this.#options
    const kind = errorKind(error)
    if (kind === 'message') {
      this.#endTrouble()
      if (part.length === 1) part[0]?.settle(undelivered(error, kind, topic))
      else this.#divide(part)
      return
    }
    if (kind === 'topic' || kind === 'missing') {
      this.#endTrouble()
      // The client is replaced, because kafkajs requests all its topics at once, and the missing one fails each
      // request.
      if (kind === 'missing' && client?.recoversItself === false) shared.replace(client)
      this.#settleAll(topics.refuse(topic, error, kind))
      return
    }
    if (client !== undefined && !client.recoversItself && kind === 'unanswered') shared.replace(client)
    await this.#again(part, undelivered(error, kind, topic), client === undefined || kind === 'credentials')
  }

  /** Retries after a pause, until the time limit. */
  async #again(part: readonly Item[], outcome: Undelivered, isHopeless: boolean): Promise<void> {
    const { clock } = this.#options
    const triedMs = clock.monotonic() - (this.#failingSince ?? 0)
    const isBehind = !isHopeless && this.#isBehind
    if (isHopeless || this.#isGivenUp || triedMs >= (isBehind ? this.#behindMs : MOST_RETRYING_MS)) {
      if (isBehind) this.#behindMs = BEHIND_MS.later
      this.#settleAll(isBehind ? ofPartition(outcome) : outcome)
      this.#rest()
      return
    }
    this.#waiting.unshift(...part)
    this.#sending = []
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#pauses, LONGEST_PAUSE_MS)
    this.#pauses += 1
    await sleep(clock, pauseMs)
  }

  /** Finds the invalid message by binary search: halves the next requests. */
  #divide(part: readonly Item[]): void {
    this.#most = Math.ceil(part.length / 2)
    this.#waiting.unshift(...part)
  }

  #watch(delayMs: number): () => void {
    const { clock } = this.#options
    let cancel = clock.after(delayMs, () => {
      const triedMs = clock.monotonic() - (this.#failingSince ?? Number.POSITIVE_INFINITY)
      if (this.#isBehind && triedMs >= this.#behindMs) this.#giveUp()
      else cancel = this.#watch(RECHECK_MS)
    })
    return () => cancel()
  }

  /** Whether other partitions have answered requests that are newer than the oldest one that failed here. */
  get #isBehind(): boolean {
    return this.#failingSince !== undefined && this.#options.shared.answered > this.#failingSince
  }

  #giveUp(): void {
    this.#isGivenUp = true
    this.#behindMs = BEHIND_MS.later
    this.#settleAll(this.#silent())
  }

  #settleAll(outcome: Undelivered): void {
    this.#refusal = outcome
    for (const { settle } of this.#sending) settle(outcome)
    for (const { settle } of this.#waiting.splice(0)) settle({ ...outcome, untried: true })
  }

  #rest(): void {
    this.#endTrouble()
    this.#restsUntil = this.#options.clock.monotonic() + REST_MS
  }

  #endTrouble(): void {
    this.#failingSince = undefined
    this.#isGivenUp = false
    this.#pauses = 0
  }

  #silent(): Undelivered {
    const error = failure('SINK_UNREACHABLE', `the leader of ${this.#name} does not answer; other partitions do`)
    return { delivered: false, error }
  }

  get #name(): string {
    const { topic, partition } = this.#options
    return partition === undefined ? `topic ${quote(topic)}` : `partition ${partition} of topic ${quote(topic)}`
  }
}

/** The outcome without the claim that the cluster is unreachable. */
function ofPartition({ unreachable, ...outcome }: Undelivered): Undelivered {
  return outcome
}
