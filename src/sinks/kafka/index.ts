/**
 * Sends events to Kafka: one message each, to the topic of the sink or of the schedule. A message counts as delivered
 * when the broker's answer confirms the write to its partition. The message's key is the schedule's id, so that the
 * events of a schedule stay in one partition, in order.
 *
 * Each partition has its own queue (`partition-queue.ts`), so a hanging leader or a missing topic does not delay
 * messages for other partitions.
 */

import { checkOptions } from '../../core/checks/known-options.js'
import { systemClock } from '../../core/clock.js'
import { failure, quote } from '../../core/errors.js'
import {
  DELIVERY_OPTIONS,
  type DeliveryOptions,
  deliveryOptions,
  type Sink,
  type SinkMessage,
} from '../../core/sink.js'
import { Link } from '../broker-link.js'
import { type Addressed, byDestination } from '../by-destination.js'
import { encoder, FORMAT_OPTIONS, type FormatOptions } from '../message.js'
import { checkHeaders, checkText, chosenKey, type OverrideOptions, overrideParser, type Rule } from '../overrides.js'
import type { ClientSettings, KafkaClient, KafkaMessage } from './client.js'
import { checkOwnProducer, connectOwnProducer, type OwnProducer } from './clients/own-producer.js'
import { type ClientKind, type ClientName, chooseClient } from './clients.js'
import { draining } from './draining.js'
import { errorKind } from './kafka-errors.js'
import { PartitionQueues } from './partition-queues.js'
import { CLUSTER_OPTIONS, type ClusterOptions, clientSettings } from './settings.js'
import { connectStaggered } from './staggered-connect.js'

export type { KafkaProducer, OwnProducer } from './clients/own-producer.js'
export type { ClientName } from './clients.js'
export type { ClusterOptions, SaslOptions } from './settings.js'
export type { TlsOptions } from './tls.js'

export interface KafkaOptions extends DeliveryOptions, FormatOptions, ClusterOptions {
  /** The topic of events; a schedule may name another that `overrides` allows. */
  readonly topic: string
  /** `host:port` of some brokers, or a function that finds them. */
  readonly brokers?: readonly string[] | (() => readonly string[] | Promise<readonly string[]>)
  /** The client package. Default: the first that is installed, in the order of docs/sinks.md. */
  readonly client?: ClientName
  /** Your own producer, instead of `brokers`. The sink connects it if needed, and never disconnects it. */
  readonly producer?: OwnProducer
  /** Headers of every message. */
  readonly headers?: Readonly<Record<string, string>>
  /** The `toOptions` that schedules may set. Default: `key` for a sink that is not ordered, else none. */
  readonly overrides?: OverrideOptions<'topic'>
}

interface Outgoing {
  readonly at: number
  readonly id: string
  readonly message: KafkaMessage
  readonly bytes: number
}

const OWN = ['topic', 'brokers', 'client', 'producer', 'headers', 'overrides']
/** Estimated bytes of a record besides key, value and headers. */
const RECORD_OVERHEAD = 100

const topicName: Rule = (text) =>
  /^[\w.-]{1,249}$/.test(text) && text !== '.' && text !== '..'
    ? undefined
    : 'a topic has 1 to 249 letters, digits, ".", "_" and "-"'

const internalTopic: Rule = (text) =>
  /^(?:__|_schemas|_confluent)/i.test(text) ? 'it holds the state of the cluster or of its tools' : undefined

export function kafka(options: KafkaOptions): Sink {
  const where = 'kafka()'
  checkOptions(options, [...OWN, ...CLUSTER_OPTIONS, ...DELIVERY_OPTIONS, ...FORMAT_OPTIONS], where)
  const topic = checkText(options.topic, topicName, 'topic', where)
  const encode = encoder(options, { attributePrefix: 'ce_' }, where)
  const overridden = overrideParser(options.overrides, {
    where: 'a Kafka sink',
    fields: { topic: { rule: topicName, never: internalTopic } },
    headers: { own: checkHeaders(options.headers, where) },
    isKeyHarmless: options.ordered !== true,
  })
  const link = linkTo(options, where)
  const queues = new PartitionQueues(link, systemClock)

  function outgoing(message: SinkMessage, at: number): Addressed<Outgoing> {
    const over = overridden(message.options, chosenKey(message))
    const { contentType, body, headers: attributes } = encode(message)
    const all: Record<string, string> = { ...over.headers, ...attributes, 'content-type': contentType }
    let bytes = 3 * message.key.length + Buffer.byteLength(body) + RECORD_OVERHEAD
    for (const name in all) bytes += name.length + 3 * (all[name] ?? '').length
    return {
      to: over.texts.topic ?? topic,
      item: { at, id: message.id, bytes, message: { key: message.key, value: body, headers: all } },
    }
  }

  return {
    delivery: deliveryOptions(options, { batch: 500 }),
    check: (given, key) => void overridden(given, key),
    open: () => link.open(),
    close: () => link.close(),
    deliver: (messages, signal) =>
      link.deliver(messages.length, signal, async (_, settle) => {
        const isAwaited = () => !signal.aborted
        const topics = [...byDestination(messages, outgoing, settle)]
        await Promise.all(
          topics.map(([to, all]) => {
            const items = all.map(({ at, id, message, bytes }) => ({
              ...{ id, message, bytes, isAwaited },
              settle: settle.bind(undefined, at),
            }))
            return queues.deliver(to, items)
          }),
        )
      }),
  }
}

function linkTo(options: KafkaOptions, where: string): Link<KafkaClient> {
  const broker = 'the Kafka cluster'
  const { producer, brokers } = options
  if ((producer === undefined) === (brokers === undefined)) {
    throw failure('OPTION_INVALID', `${where}: give either brokers, or your own producer`)
  }
  if (producer !== undefined) {
    checkOwnProducer(producer, where)
    const forbidden = [...CLUSTER_OPTIONS, 'client'].find((name) => Object.hasOwn(options, name))
    if (forbidden !== undefined) {
      throw failure('OPTION_INVALID', `${where}: ${forbidden} is for brokers; your own producer has its own settings`)
    }
    return new Link({ broker, owned: false, connect: () => connectOwnProducer(producer), end: () => {} })
  }
  const find = brokerFinder(brokers, where)
  const settings = clientSettings(options, where)
  const kind = chooseClient(options.client, settings, where)
  let first = 0
  const connect = async () => {
    const found = await find()
    first += 1
    // Each attempt starts with the next broker.
    const start = (first - 1) % found.length
    return connectBy([...found.slice(start), ...found.slice(0, start)], kind, settings)
  }
  return new Link({ broker, owned: true, connect, end: (client) => client.close() })
}

async function connectBy(brokers: readonly string[], kind: ClientKind, settings: ClientSettings): Promise<KafkaClient> {
  const connect = (those: readonly string[]) => kind.connect(those, settings)
  try {
    const client = kind.needsStagger
      ? await connectStaggered(brokers, connect, (late) => late.close())
      : await connect(brokers)
    return draining(client, settings.requestTimeoutMs)
  } catch (error) {
    if (errorKind(error) !== 'credentials') throw error
    const said = error instanceof Error ? error.message : String(error)
    throw failure('SINK_UNREACHABLE', `it refuses the credentials: ${said}`, { cause: error })
  }
}

function brokerFinder(brokers: unknown, where: string): () => Promise<readonly string[]> {
  if (typeof brokers !== 'function') {
    const listed = checkBrokers(brokers, where)
    return async () => listed
  }
  return async () => checkBrokers(await brokers(), where)
}

function checkBrokers(brokers: unknown, where: string): readonly string[] {
  const isList = Array.isArray(brokers) && brokers.length > 0
  if (isList && brokers.every((each) => /^[^\s/]+:\d+$/.test(String(each)))) return brokers.map(String)
  throw failure(
    'OPTION_INVALID',
    `${where}: brokers is ${quote(brokers)}; write ['host:9092', …], or a function that finds them`,
  )
}
