/**
 * Events to Kafka, by any producer that speaks as that of KafkaJS does: `kafkajs` itself, made here from `brokers`, or one
 * that the user brings (`@confluentinc/kafka-javascript` has it as `KafkaJS.Kafka`). A message counts as delivered when
 * all replicas in sync have it. Its key is the schedule's id, so that what a schedule emits stays in one partition, in order.
 *
 * Kafka answers for a whole batch. One that holds a message which is too large is halved until that one is alone, so that
 * it takes no other with it; a topic that there is not refuses all of its messages, and none of another topic.
 */
import { failure, quote } from '../core/errors.js'
import { checkOptions } from '../core/known-options.js'
import {
  DELIVERED,
  DELIVERY_OPTIONS,
  type Delivery,
  type DeliveryOptions,
  deliveryOptions,
  type Sink,
  type SinkMessage,
} from '../core/sink.js'
import { type Addressed, byDestination } from './by-destination.js'
import { Link, type Settle } from './link.js'
import { encoder, FORMAT_OPTIONS, type FormatOptions } from './message.js'
import { checkHeaders, checkText, overrides, type Rule } from './overrides.js'
import { peer } from './peer.js'

export interface KafkaOptions extends DeliveryOptions, FormatOptions {
  /** Where events go; a schedule may name another (`toOptions: { topic }`). */
  readonly topic: string
  /** `host:port` of some brokers, or a function that finds them: a producer is made by kafkajs. */
  readonly brokers?: readonly string[] | (() => readonly string[] | Promise<readonly string[]>)
  /** A producer of yours instead. It is connected if need be, and never disconnected. */
  readonly producer?: KafkaProducer
  /** Whatever else kafkajs should know of the cluster: `ssl`, `sasl`, `clientId`, timeouts. */
  readonly client?: Readonly<Record<string, unknown>>
  /** Headers of every message. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The calls that are made of a producer. */
export interface KafkaProducer {
  connect(): Promise<unknown>
  send(record: KafkaRecord): Promise<unknown>
  disconnect(): Promise<unknown>
}

export interface KafkaRecord {
  topic: string
  messages: KafkaMessage[]
  acks?: number
}

export interface KafkaMessage {
  key: string
  value: string
  headers: Record<string, string>
}

interface KafkaJs {
  readonly Kafka: new (options: object) => { producer(options: object): KafkaProducer }
  readonly Partitioners: { readonly DefaultPartitioner: unknown }
  readonly logLevel: { readonly NOTHING: number }
}

/** A message for a topic, and whose outcome it is. */
interface Item {
  readonly at: number
  readonly message: KafkaMessage
  readonly bytes: number
}

/** A producer that was dropped after a failure: what it was given then has not been sent. */
const SPENT = Symbol('spent')

const OWN = ['topic', 'brokers', 'producer', 'client', 'headers']
/** Brokers take a little over a million bytes at a time, unless told otherwise. */
const MOST_BYTES = 900_000
const BYTES_AROUND = 100
const RETRY = { retries: 3, initialRetryTime: 100, maxRetryTime: 1_000 }

/**
 * Kafka's own numbers, which all clients pass on: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION,
 * TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED, POLICY_VIOLATION, and what librdkafka calls the first.
 */
const TOPIC_REFUSED = [3, 17, 29, 31, 44, -188, -190]
/** MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_RECORD: about a message, which may be one of many. */
const MESSAGE_REFUSED = [10, 18, 87]

const topicName: Rule = (text) =>
  /^[\w.-]{1,249}$/.test(text) && text !== '.' && text !== '..'
    ? undefined
    : 'a topic has 1 to 249 letters, digits, ".", "_" and "-"'

export function kafka(options: KafkaOptions): Sink {
  const where = 'kafka()'
  checkOptions(options, [...OWN, ...DELIVERY_OPTIONS, ...FORMAT_OPTIONS], where)
  const topic = checkText(options.topic, topicName, 'topic', where)
  const headers = checkHeaders(options.headers, where)
  const encode = encoder(options, { attributePrefix: 'ce_' }, where)
  const overridden = overrides({ topic: topicName }, 'a Kafka sink')
  const link = linkTo(options, where)

  function itemFor(message: SinkMessage, at: number): Addressed<Item> {
    const over = overridden(message.options)
    const { contentType, body, headers: attributes } = encode(message)
    const all: Record<string, string> = { ...headers, ...over.headers, ...attributes, 'content-type': contentType }
    let bytes = 3 * message.key.length + Buffer.byteLength(body) + BYTES_AROUND
    for (const name in all) bytes += name.length + 3 * (all[name] ?? '').length
    return {
      to: over.texts.topic ?? topic,
      item: { at, bytes, message: { key: message.key, value: body, headers: all } },
    }
  }

  return {
    delivery: deliveryOptions(options, { batch: 500 }),
    check: (given) => void overridden(given),
    open: () => link.open(),
    close: () => link.close(),
    deliver: (messages, signal) =>
      link.deliver(messages.length, signal, async (_, settle) => {
        const topics = byDestination(messages, itemFor, settle)
        await Promise.all([...topics].map(([to, items]) => sendInOrder(link, to, items, settle, signal)))
      }),
  }
}

/** Sends what a topic gets: what comes after a failure is not sent before it. */
async function sendInOrder(
  link: Link<KafkaProducer>,
  topic: string,
  items: readonly Item[],
  settle: Settle,
  signal: AbortSignal,
): Promise<void> {
  const left = inParts(items)
  for (let part = left.shift(); part !== undefined && !signal.aborted; part = left.shift()) {
    const error = await sendPart(link, topic, part)
    const code = error === undefined ? 0 : kafkaCode(error)
    if (error === undefined) for (const { at } of part) settle(at, DELIVERED)
    else if (MESSAGE_REFUSED.includes(code)) {
      if (part.length > 1) left.unshift(part.slice(0, part.length / 2), part.slice(part.length / 2))
      else for (const { at } of part) settle(at, failureOf(error, code, topic))
    } else {
      for (const { at } of [part, ...left.splice(0)].flat()) settle(at, failureOf(error, code, topic))
    }
  }
}

/** Undefined when all of it is there, else what was thrown. A producer that has failed once is not used again. */
async function sendPart(link: Link<KafkaProducer>, topic: string, part: readonly Item[]): Promise<unknown> {
  for (;;) {
    const producer = await link.get()
    try {
      await producer.send({ topic, messages: part.map(({ message }) => message) })
      return undefined
    } catch (error) {
      link.lose(producer)
      if (error !== SPENT) return error ?? new Error('the producer threw nothing')
    }
  }
}

/** No more in one part than a broker takes at a time. */
function inParts(items: readonly Item[]): (readonly Item[])[] {
  const parts: Item[][] = []
  let room = 0
  for (const item of items) {
    if (item.bytes > room || parts.length === 0) {
      parts.push([])
      room = MOST_BYTES
    }
    parts.at(-1)?.push(item)
    room -= item.bytes
  }
  return parts
}

function failureOf(cause: unknown, code: number, topic: string): Delivery {
  const said = cause instanceof Error ? cause.message : String(cause)
  if (TOPIC_REFUSED.includes(code) || MESSAGE_REFUSED.includes(code)) {
    const error = failure('SINK_REFUSED', `Kafka does not take this message for topic ${quote(topic)}: ${said}`, {
      cause,
    })
    return { delivered: false, error, retryable: false }
  }
  if (code !== 0) return { delivered: false, error: cause }
  const error = failure('SINK_UNREACHABLE', `the Kafka cluster cannot be reached: ${said}`, { cause })
  return { delivered: false, error, unreachable: true }
}

/** What the broker itself said, however the client wraps it: 0 when it said nothing. */
function kafkaCode(error: unknown): number {
  for (let [inner, depth] = [error, 0] as [unknown, number]; depth < 5; depth += 1) {
    if (typeof inner !== 'object' || inner === null) return 0
    const { code, originalError, cause } = inner as { code?: unknown; originalError?: unknown; cause?: unknown }
    if (typeof code === 'number' && Number.isInteger(code)) return code
    inner = originalError ?? cause
  }
  return 0
}

/** No connection, or no answer on it: of a cluster that was not heard of, nothing else is to be learned either. */
function isUnanswered(error: unknown): boolean {
  for (let [inner, depth] = [error, 0] as [unknown, number]; depth < 5; depth += 1) {
    if (typeof inner !== 'object' || inner === null) return false
    const { name, originalError, cause } = inner as { name?: unknown; originalError?: unknown; cause?: unknown }
    if (typeof name === 'string' && /Connection|Timeout/.test(name)) return true
    inner = originalError ?? cause
  }
  return false
}

function linkTo({ producer, brokers, client }: KafkaOptions, where: string): Link<KafkaProducer> {
  const whom = 'the Kafka cluster'
  if ((producer === undefined) === (brokers === undefined)) {
    throw failure('OPTION_INVALID', `${where}: give either brokers, or a producer of yours`)
  }
  if (producer !== undefined) {
    checkProducer(producer, where)
    // One that is connected may refuse to do it again. If it is not, sending says so.
    const connect = () =>
      Promise.resolve(producer.connect()).then(
        () => producer,
        () => producer,
      )
    return new Link({ whom, owned: false, connect, end: () => {} })
  }
  checkBrokers(brokers, where)
  const { Kafka, Partitioners, logLevel } = peer<KafkaJs>('kafkajs', where)
  const settings = { clientId: 'belfry', requestTimeout: 10_000, connectionTimeout: 5_000, retry: RETRY }
  const cluster = new Kafka({ ...settings, logLevel: logLevel.NOTHING, ...client, brokers })
  const make = async (idempotent: boolean) => {
    const made = cluster.producer({ idempotent, retry: RETRY, createPartitioner: Partitioners.DefaultPartitioner })
    try {
      await made.connect()
    } catch (error) {
      await made.disconnect().catch(() => {})
      throw error
    }
    return inTurn(made)
  }
  // A cluster that answers, and has no idempotent producers or does not allow them, has others.
  const connect = () =>
    make(true).catch((error: unknown) => {
      if (isUnanswered(error)) throw error
      return make(false)
    })
  return new Link({ whom, owned: true, connect, end: (made) => made.disconnect() })
}

/**
 * One request at a time, and none after one that failed. An idempotent producer of kafkajs numbers its messages, and does
 * not count those whose answer it did not get: the next ones would have the same numbers, and the broker would take them
 * for repetitions, acknowledge them, and throw them away.
 */
function inTurn(producer: KafkaProducer): KafkaProducer {
  let last: Promise<unknown> = Promise.resolve()
  let spent = false
  return {
    connect: () => producer.connect(),
    disconnect: () => producer.disconnect(),
    send(record) {
      const turn = last.then(async () => {
        if (spent) throw SPENT
        try {
          await producer.send({ ...record, acks: -1 })
        } catch (error) {
          spent = true
          throw error
        }
      })
      last = turn.catch(() => {})
      return turn
    },
  }
}

function checkProducer(producer: KafkaProducer, where: string): void {
  for (const call of ['connect', 'send'] as const) {
    if (typeof producer?.[call] === 'function') continue
    throw failure(
      'OPTION_INVALID',
      `${where}: producer has no ${call}(); give one of kafkajs, or one that is compatible`,
    )
  }
}

function checkBrokers(brokers: unknown, where: string): void {
  const listed =
    Array.isArray(brokers) && brokers.length > 0 && brokers.every((each) => /^[^\s/]+:\d+$/.test(String(each)))
  if (listed || typeof brokers === 'function') return
  throw failure(
    'OPTION_INVALID',
    `${where}: brokers is ${quote(brokers)}; write ['host:9092', …], or a function that finds them`,
  )
}
