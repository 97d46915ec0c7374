/**
 * The way to one partition: one request at a time, and nothing overtakes a message that is being tried again.
 *
 * - A leader that has moved, or a connection that broke, is met by trying again, soon and then once a second. Most failovers
 *   end that way, and cost no attempt of a run.
 * - A leader that hangs must not keep other partitions waiting: calls carry messages for many. When this partition has got
 *   no answer for a moment, while requests that began later were answered elsewhere, its messages are given up, and the
 *   engine tries them again. Meanwhile more of them are refused at once. What is acknowledged after that is remembered, so
 *   that a leader which is only slow delivers too, and writes nothing twice.
 * - When nothing is answered anywhere, waiting harms nobody: it ends with the request's own time limit.
 * - A partition that the answer does not name was not written, whatever else the answer says.
 */
import { type Clock, sleep } from '../../core/clock.js'
import { failure, quote } from '../../core/errors.js'
import { DELIVERED, type Delivery, type Undelivered } from '../../core/sink.js'
import type { Link } from '../link.js'
import type { KafkaClient, KafkaMessage, Written } from './client.js'
import type { Topics } from './topics.js'
import { LeftOut, troubleOf, undelivered } from './trouble.js'

/** A message, and whose outcome it is. */
export interface Item {
  /** The event's id. */
  readonly id: string
  readonly message: KafkaMessage
  readonly bytes: number
  /** The first outcome counts. */
  readonly settle: (outcome: Delivery) => void
  /** False once nobody waits for the outcome any more. */
  readonly isAwaited: () => boolean
}

export interface LaneOptions {
  readonly topic: string
  /** Undefined where a producer of the user's chooses it. */
  readonly partition: number | undefined
  readonly link: Link<KafkaClient>
  readonly topics: Topics
  readonly clock: Clock
  readonly pulse: Pulse
}

/** What the lanes of a sink know of each other. */
export interface Pulse {
  /** When the newest of the requests began that were answered. */
  answered: number
  /** Replaces a client that gets no answers. */
  replace(client: KafkaClient): void
  /** An event was written after all, although it had been given up. */
  writtenLate(topic: string, id: string): void
}

/** Brokers take a little over a million bytes at a time, unless told otherwise. */
const MOST_BYTES = 900_000
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 1_000
/** How long a partition may be silent while others answer. */
const PATIENCE_MS = 2_000
const WATCH_MS = 500
/** How long a partition is tried while nothing is answered anywhere; a failover of Kafka takes nine seconds or so. */
const MOST_TRYING_MS = 12_000
/** How long a partition that was given up is left alone. */
const REST_MS = 1_000

export class Lane {
  readonly #options: LaneOptions
  #waiting: Item[] = []
  #sending: readonly Item[] = []
  #isWorking = false
  /** When the first of the requests began that have got nothing through. */
  #troubledSince: number | undefined
  #isGivenUp = false
  #restsUntil = Number.NEGATIVE_INFINITY
  /** Why messages are refused while the partition is given up, or left alone. */
  #refusal: Undelivered | undefined
  #pauses = 0
  /** The most that a request may hold, while one that is too large is looked for. */
  #most = Number.POSITIVE_INFINITY

  constructor(options: LaneOptions) {
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

  /** As much as one request holds. Messages that nobody waits for are not sent. */
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
    const { topic, partition, link, clock, pulse } = this.#options
    const begunAt = clock.monotonic()
    this.#troubledSince ??= begunAt
    const cancelWatch = this.#watch(PATIENCE_MS)
    let client: KafkaClient | undefined
    try {
      client = await link.get()
      const messages = part.map(({ message }) => message)
      this.#check(await client.send(topic, partition, messages))
      pulse.answered = Math.max(pulse.answered, begunAt)
      if (this.#isGivenUp) for (const { id } of part) pulse.writtenLate(topic, id)
      this.#endTrouble()
      this.#most = Number.POSITIVE_INFINITY
      for (const { settle } of part) settle(DELIVERED)
    } catch (error) {
      await this.#failed(part, error, client)
    } finally {
      cancelWatch()
    }
  }

  /** What an answer leaves out was not written. */
  #check(written: readonly Written[]): void {
    const { topic, partition } = this.#options
    if (written.some((each) => each.topic === topic && each.partition === partition)) return
    throw new LeftOut(`the answer leaves out ${this.#place}`)
  }

  async #failed(part: readonly Item[], error: unknown, client: KafkaClient | undefined): Promise<void> {
    const { topic, topics, pulse } = this.#options
    const trouble = troubleOf(error)
    if (trouble === 'message') {
      this.#endTrouble()
      if (part.length === 1) part[0]?.settle(undelivered(error, trouble, topic))
      else this.#divide(part)
      return
    }
    if (trouble === 'topic' || trouble === 'missing') {
      this.#endTrouble()
      // kafkajs asks for all its topics at once, and would find none as long as one of them is missing.
      if (trouble === 'missing' && client?.healsItself === false) pulse.replace(client)
      this.#settleAll(topics.refuse(topic, error, trouble))
      return
    }
    if (client !== undefined && !client.healsItself && trouble === 'unanswered') pulse.replace(client)
    await this.#again(part, undelivered(error, trouble, topic), client === undefined || trouble === 'credentials')
  }

  /** Tries once more after a pause, unless that has been done for long enough. */
  async #again(part: readonly Item[], outcome: Undelivered, isHopeless: boolean): Promise<void> {
    const { clock } = this.#options
    const triedMs = clock.monotonic() - (this.#troubledSince ?? 0)
    if (isHopeless || this.#isGivenUp || triedMs >= MOST_TRYING_MS) {
      this.#settleAll(outcome)
      this.#rest()
      return
    }
    this.#waiting.unshift(...part)
    this.#sending = []
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#pauses, LONGEST_PAUSE_MS)
    this.#pauses += 1
    await sleep(clock, pauseMs)
  }

  /** Looks for the message that is too large by smaller and smaller requests. */
  #divide(part: readonly Item[]): void {
    this.#most = Math.ceil(part.length / 2)
    this.#waiting.unshift(...part)
  }

  #watch(delayMs: number): () => void {
    const { clock, pulse } = this.#options
    let cancel = clock.after(delayMs, () => {
      const since = this.#troubledSince
      const isBehind = since !== undefined && pulse.answered > since && clock.monotonic() - since >= PATIENCE_MS
      if (isBehind) this.#giveUp()
      else cancel = this.#watch(WATCH_MS)
    })
    return () => cancel()
  }

  #giveUp(): void {
    this.#isGivenUp = true
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
    this.#troubledSince = undefined
    this.#isGivenUp = false
    this.#pauses = 0
  }

  #silent(): Undelivered {
    const error = failure('SINK_UNREACHABLE', `the leader of ${this.#place} does not answer; other partitions do`)
    return { delivered: false, error, unreachable: true }
  }

  get #place(): string {
    const { topic, partition } = this.#options
    return partition === undefined ? `topic ${quote(topic)}` : `partition ${partition} of topic ${quote(topic)}`
  }
}
