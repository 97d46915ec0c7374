/**
 * Events to RabbitMQ. A message counts as delivered when the broker has confirmed it: it is persistent, so a durable queue
 * has it on disk by then; and it is mandatory, so one that no queue gets comes back instead of vanishing.
 */
import { failure, quote } from '../../core/errors.js'
import { checkOptions } from '../../core/known-options.js'
import {
  DELIVERY_OPTIONS,
  type Delivery,
  type DeliveryOptions,
  deliveryOptions,
  type Sink,
  type SinkMessage,
} from '../../core/sink.js'
import { type Addressed, byDestination } from '../by-destination.js'
import { Destinations } from '../destinations.js'
import { Link, type Settle } from '../link.js'
import { encoder, FORMAT_OPTIONS, type FormatOptions } from '../message.js'
import { checkHeaders, checkText, overrides, type Rule } from '../overrides.js'
import { type AmqpConnection, type Connected, connector, disconnect, whileUnblocked } from './amqp.js'
import { type Answer, ExchangeChannel, NACKED, type Publication, SUSPECT } from './exchange-channel.js'

export type { AmqpChannel, AmqpConnection, AmqpReturned } from './amqp.js'

export interface RabbitMqOptions extends Destination, DeliveryOptions, FormatOptions {
  /**
   * `amqp://user:password@host/vhost`, or those of several nodes of a cluster: when a connection is lost, the next node is
   * tried. Connections are made by amqplib.
   */
  readonly url?: string | readonly string[]
  /** Makes a connection of amqplib's instead; called again whenever one is lost. */
  readonly connect?: () => Promise<AmqpConnection>
  /** Headers of every message. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Where events go: a schedule may say otherwise in the same words (`toOptions: { exchange }`). */
export interface Destination {
  readonly exchange?: string
  /** What the exchange routes by. Default the message's key, which is the schedule's id unless that says otherwise. */
  readonly routingKey?: string
  /** A queue to send to, instead of an exchange. */
  readonly queue?: string
}

interface Item extends Publication {
  readonly at: number
}

const OWN = ['url', 'connect', 'exchange', 'routingKey', 'queue', 'headers']
const WHERE = 'a RabbitMQ sink'
const MOST_CHANNELS = 32
/** Calls that began before the broker said how large a message may be can each close the channel once more. */
const MOST_ROUNDS = 5
/** Longer than the queues of a cluster need to elect a leader. */
const PATIENCE_MS = 10_000
/** Names in AMQP have at most so many bytes. */
const MOST_BYTES = 255

const shortText: Rule = (text) => {
  if (text === '') return 'it must not be empty'
  return Buffer.byteLength(text) <= MOST_BYTES ? undefined : `RabbitMQ allows ${MOST_BYTES} bytes at most`
}
const RULES = { exchange: shortText, routingKey: shortText, queue: shortText }

export function rabbitmq(options: RabbitMqOptions): Sink {
  const where = 'rabbitmq()'
  checkOptions(options, [...OWN, ...DELIVERY_OPTIONS, ...FORMAT_OPTIONS], where)
  const own = destination(options, {}, where)
  const headers = checkHeaders(options.headers, where)
  const encode = encoder(options, { attributePrefix: 'cloudEvents_' }, where)
  const overridden = overrides(RULES, WHERE)
  const link = new Link<Connected>({
    whom: 'RabbitMQ',
    owned: true,
    connect: connector(options.url, options.connect, where),
    end: disconnect,
    patienceMs: PATIENCE_MS,
  })
  const destinations = new Destinations()

  function itemFor(message: SinkMessage, at: number): Addressed<Item> {
    const over = overridden(message.options)
    const { exchange, routingKey } = message.options === undefined ? own : destination(options, over.texts, WHERE)
    const { contentType, body, headers: attributes } = encode(message)
    const all = { ...headers, ...over.headers, ...attributes }
    const item = {
      at,
      id: message.id,
      routingKey: routingKey ?? checkText(message.key, shortText, 'the key, which the exchange routes by,', WHERE),
      content: Buffer.from(body),
      properties: propertiesOf(message, contentType, all),
    }
    return { to: exchange, item }
  }

  return {
    delivery: deliveryOptions(options, { batch: 500 }),
    check: (given) => void destination(options, overridden(given).texts, WHERE),
    open: () => link.open(),
    close: () => link.close(),
    deliver: (messages, signal) =>
      link.deliver(messages.length, signal, async (connected, settle) => {
        const publish = () => {
          const exchanges = [...byDestination(messages, itemFor, settle)]
          return Promise.all(
            exchanges.map(([exchange, items]) => publishAll({ connected, destinations, exchange }, items, settle)),
          )
        }
        await whileUnblocked(connected, publish)
      }),
  }
}

/** A queue is the default exchange, with the queue's name to route by. */
function destination(
  own: Destination,
  over: Destination,
  where: string,
): { readonly exchange: string; readonly routingKey?: string } {
  const said = Object.keys(over).length > 0
  const given = said
    ? { exchange: over.exchange ?? own.exchange, routingKey: over.routingKey ?? own.routingKey, queue: over.queue }
    : own
  for (const [name, rule] of Object.entries(RULES)) {
    const value = given[name as keyof Destination]
    if (value !== undefined) checkText(value, rule, name, where)
  }
  const { exchange, routingKey, queue } = given
  if ((exchange === undefined) === (queue === undefined) && !(said && queue !== undefined)) {
    throw failure('OPTION_INVALID', `${where}: say where events go: either an exchange, or a queue`)
  }
  if (queue !== undefined) return { exchange: '', routingKey: queue }
  return { exchange: exchange ?? '', ...(routingKey === undefined ? {} : { routingKey }) }
}

function propertiesOf({ id, generated_at }: SinkMessage, contentType: string, headers: object): object {
  const isShort = Buffer.byteLength(id) <= MOST_BYTES
  return {
    ...(isShort ? { messageId: id } : {}),
    headers: isShort ? headers : { ...headers, 'belfry-id': id },
    contentType,
    appId: 'belfry',
    timestamp: Math.floor(Date.parse(generated_at) / 1_000),
    persistent: true,
    mandatory: true,
  }
}

interface Way {
  readonly connected: Connected
  readonly destinations: Destinations
  readonly exchange: string
}

/**
 * When a channel was closed because a message is too large, the broker says how large one may be: the others that it took
 * with it are sent once more, together. When it does not say which was wrong, they are sent alone: only that one fails.
 */
async function publishAll(way: Way, items: readonly Item[], settle: Settle): Promise<void> {
  let suspects = await publishOnce(way, items, settle)
  for (let round = 0; suspects.length > 0 && way.connected.mostBytes !== undefined && round < MOST_ROUNDS; round += 1) {
    suspects = await publishOnce(way, suspects, settle)
  }
  for (const item of suspects) heard(way, item, await publishAlone(way, item), settle)
}

/** Answers with what the channel took with it when it was closed. */
async function publishOnce(way: Way, items: readonly Item[], settle: Settle): Promise<Item[]> {
  const { connected, exchange } = way
  const channel = await channelFor(connected, exchange)
  const suspects: Item[] = []
  const publish = async (item: Item) => {
    const { mostBytes } = connected
    if (mostBytes !== undefined && item.content.length > mostBytes) return settle(item.at, tooLarge(item, mostBytes))
    const answer = await channel.publish(item)
    if (answer === SUSPECT) suspects.push(item)
    else heard(way, item, answer, settle)
  }
  await Promise.all(items.map(publish))
  connected.mostBytes ??= channel.mostBytes
  return suspects
}

function heard({ destinations, exchange }: Way, item: Item, answer: Exclude<Answer, typeof SUSPECT>, settle: Settle) {
  const destination = exchange === '' ? `queue ${quote(item.routingKey)}` : `exchange ${quote(exchange)}`
  if (answer === NACKED) return settle(item.at, nacked(destination, destinations.refused(destination)))
  if (answer.delivered) destinations.took(destination)
  settle(item.at, answer)
}

function tooLarge({ content }: Item, mostBytes: number): Delivery {
  const what = `RabbitMQ takes messages of ${mostBytes} bytes at most, and this one has ${content.length}`
  return { delivered: false, error: failure('SINK_REFUSED', what), retryable: false }
}

function nacked(destination: string, isBrokers: boolean): Delivery {
  const what = `RabbitMQ did not take the message for ${destination}: is a queue full, or its quorum lost?`
  const refused = { delivered: false as const, error: failure('SINK_REFUSED', what) }
  return isBrokers ? { ...refused, unreachable: true } : refused
}

/** On a channel that nobody else uses: what closes it is this message. */
async function publishAlone({ connected, exchange }: Way, item: Item): Promise<Exclude<Answer, typeof SUSPECT>> {
  const channel = await ExchangeChannel.open(connected.connection, exchange, () => {})
  const outcome = await channel.publish(item)
  if (outcome === SUSPECT) return channel.refusal()
  await channel.close().catch(() => {})
  return outcome
}

function channelFor({ connection, channels }: Connected, exchange: string): Promise<ExchangeChannel> {
  const known = channels.get(exchange)
  if (known !== undefined) return known
  const forget = () => {
    if (channels.get(exchange) === opened) channels.delete(exchange)
  }
  const opened = ExchangeChannel.open(connection, exchange, forget)
  channels.set(exchange, opened)
  opened.catch(forget)
  if (channels.size > MOST_CHANNELS) void closeIdle(channels).catch(() => {})
  return opened
}

/** Schedules may name any number of exchanges. */
async function closeIdle(channels: Map<string, Promise<ExchangeChannel>>): Promise<void> {
  for (const [exchange, opened] of channels) {
    const channel = await opened
    if (!channel.isIdle || channels.get(exchange) !== opened) continue
    channels.delete(exchange)
    return await channel.close()
  }
}
