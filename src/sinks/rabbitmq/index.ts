/**
 * Sends events to RabbitMQ. A message counts as delivered when the broker has confirmed it. Messages are persistent, so
 * a durable queue has them on disk before the confirmation. They are mandatory, so the broker returns a message without
 * a queue instead of dropping it.
 */

import { checkOptions } from '../../core/checks/known-options.js'
import { failure, quote } from '../../core/errors.js'
import {
  DELIVERY_OPTIONS,
  type Delivery,
  type DeliveryOptions,
  deliveryOptions,
  type Sink,
  type SinkMessage,
} from '../../core/sink.js'
import { Link, type Settle } from '../broker-link.js'
import { type Addressed, byDestination } from '../by-destination.js'
import { Destinations } from '../destinations.js'
import { encoder, FORMAT_OPTIONS, type FormatOptions } from '../message.js'
import { checkHeaders, checkText, chosenKey, type OverrideOptions, overrideParser, type Rule } from '../overrides.js'
import { type AmqpConnection, type Connected, connector, disconnect, whileUnblocked } from './amqp.js'
import { type Answer, ExchangeChannel, NACKED, type Publication, SUSPECT } from './exchange-channel.js'

export type { AmqpChannel, AmqpConnection, AmqpReturned } from './amqp.js'

export interface RabbitMqOptions extends Destination, DeliveryOptions, FormatOptions {
  /**
   * `amqp://user:password@host/vhost`, or a list of nodes of a cluster: after a lost connection the next node is tried.
   * amqplib connects.
   */
  readonly url?: string | readonly string[]
  /** Your own function that connects with amqplib; called again after each lost connection. */
  readonly connect?: () => Promise<AmqpConnection>
  /** Headers of every message. */
  readonly headers?: Readonly<Record<string, string>>
  /** The `toOptions` that schedules may set. Default: `key` if it neither routes nor orders, else none. */
  readonly overrides?: OverrideOptions<'exchange' | 'routingKey' | 'queue'>
}

/** The destination of events. A schedule may set those parts that `overrides` allows. */
export interface Destination {
  readonly exchange?: string
  /** Default: the message's key, by default the schedule's id. */
  readonly routingKey?: string
  /** A queue to send to, instead of an exchange. */
  readonly queue?: string
}

interface Item extends Publication {
  readonly at: number
}

const OWN = ['url', 'connect', 'exchange', 'routingKey', 'queue', 'headers', 'overrides']
const WHERE = 'a RabbitMQ sink'
const MOST_CHANNELS = 32
/**
 * The most rounds in which the remaining messages are sent again. Concurrent calls that do not know the size limit yet
 * can each close the channel once more.
 */
const MOST_ROUNDS = 5
/** How long the broker may take to confirm: longer than the queues of a cluster need to elect a leader. */
const CONFIRM_TIMEOUT_MS = 10_000
/** The longest short string of AMQP, in bytes. */
const MOST_BYTES = 255

const shortText: Rule = (text) => {
  if (text === '') return 'it must not be empty'
  return Buffer.byteLength(text) <= MOST_BYTES ? undefined : `RabbitMQ allows ${MOST_BYTES} bytes at most`
}
const RULES = { exchange: shortText, routingKey: shortText, queue: shortText }
/** Exchanges `amq.rabbitmq.*` belong to the broker. Queues `amq.*` belong to connections, such as those of RPC clients. */
const brokerExchange: Rule = (text) => (/^amq\.rabbitmq\./i.test(text) ? 'it belongs to the broker' : undefined)
const brokerQueue: Rule = (text) => (/^amq\./i.test(text) ? 'it belongs to the broker or to a connection' : undefined)
/**
 * Headers by which RabbitMQ and its plugins act: they add receivers, delay a message, or carry the history of dead
 * letters and of federation.
 */
const BROKER_HEADERS =
  /^(?:b?cc|x-(?:(?:first-|last-)?death|delay|opt|stream|basic|received-from|shovelled|routing|cc).*)$/

export function rabbitmq(options: RabbitMqOptions): Sink {
  const where = 'rabbitmq()'
  checkOptions(options, [...OWN, ...DELIVERY_OPTIONS, ...FORMAT_OPTIONS], where)
  const own = destination(options, {}, where)
  const encode = encoder(options, { attributePrefix: 'cloudEvents_' }, where)
  const overridden = overrideParser(options.overrides, {
    where: WHERE,
    fields: {
      exchange: { rule: shortText, never: brokerExchange },
      routingKey: { rule: shortText, never: brokerQueue },
      queue: { rule: shortText, never: brokerQueue },
    },
    headers: { own: checkHeaders(options.headers, where), reserved: BROKER_HEADERS },
    isKeyHarmless: options.ordered !== true && !mayRouteByKey(options),
  })
  const link = new Link<Connected>({
    broker: 'RabbitMQ',
    owned: true,
    connect: connector(options.url, options.connect, where),
    end: disconnect,
    outcomeTimeoutMs: CONFIRM_TIMEOUT_MS,
  })
  const destinations = new Destinations()

  function itemFor(message: SinkMessage, at: number): Addressed<Item> {
    const over = overridden(message.options, chosenKey(message))
    const { exchange, routingKey } = message.options === undefined ? own : destination(options, over.texts, WHERE)
    const { contentType, body, headers: attributes } = encode(message)
    const all = { ...over.headers, ...attributes }
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
    check: (given, key) => void destination(options, overridden(given, key).texts, WHERE),
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

/** Whether a message's key may decide its route: an exchange without a routing key routes by the message's key. */
function mayRouteByKey({ routingKey, queue, overrides }: RabbitMqOptions): boolean {
  return routingKey === undefined && (queue === undefined || (overrides?.exchange ?? false) !== false)
}

/** A queue is addressed through the default exchange, with its name as routing key. */
function destination(
  own: Destination,
  over: Destination,
  where: string,
): { readonly exchange: string; readonly routingKey?: string } {
  const isOverridden = Object.keys(over).length > 0
  const given = isOverridden
    ? { exchange: over.exchange ?? own.exchange, routingKey: over.routingKey ?? own.routingKey, queue: over.queue }
    : own
  for (const [name, rule] of Object.entries(RULES)) {
    const value = given[name as keyof Destination]
    if (value !== undefined) checkText(value, rule, name, where)
  }
  const { exchange, routingKey, queue } = given
  if ((exchange === undefined) === (queue === undefined) && !(isOverridden && queue !== undefined)) {
    throw failure('OPTION_INVALID', `${where}: give either an exchange or a queue`)
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

interface Publishing {
  readonly connected: Connected
  readonly destinations: Destinations
  readonly exchange: string
}

/**
 * Publishes messages, and finds the one that made the broker close the channel. If a message is too large, the broker's
 * error names the limit, and all other messages are sent again together. If the error does not tell which message was
 * wrong, each is sent alone, and only the wrong one fails.
 */
async function publishAll(to: Publishing, items: readonly Item[], settle: Settle): Promise<void> {
  let suspects = await publishOnce(to, items, settle)
  for (let round = 0; suspects.length > 0 && to.connected.mostBytes !== undefined && round < MOST_ROUNDS; round += 1) {
    suspects = await publishOnce(to, suspects, settle)
  }
  for (const item of suspects) settleAnswer(to, item, await publishAlone(to, item), settle)
}

/** Publishes messages once. Resolves to those that were lost because the broker closed the channel. */
async function publishOnce(to: Publishing, items: readonly Item[], settle: Settle): Promise<Item[]> {
  const { connected, exchange } = to
  const channel = await channelFor(connected, exchange)
  const suspects: Item[] = []
  const publish = async (item: Item) => {
    const { mostBytes } = connected
    if (mostBytes !== undefined && item.content.length > mostBytes) return settle(item.at, tooLarge(item, mostBytes))
    const answer = await channel.publish(item)
    if (answer === SUSPECT) suspects.push(item)
    else settleAnswer(to, item, answer, settle)
  }
  await Promise.all(items.map(publish))
  connected.mostBytes ??= channel.mostBytes
  return suspects
}

function settleAnswer(
  { destinations, exchange }: Publishing,
  item: Item,
  answer: Exclude<Answer, typeof SUSPECT>,
  settle: Settle,
) {
  const destination = exchange === '' ? `queue ${quote(item.routingKey)}` : `exchange ${quote(exchange)}`
  if (answer === NACKED) return settle(item.at, nacked(destination, destinations.refused(destination)))
  if (answer.delivered) destinations.accepted(destination)
  settle(item.at, answer)
}

function tooLarge({ content }: Item, mostBytes: number): Delivery {
  const what = `RabbitMQ accepts messages of at most ${mostBytes} bytes, and this one has ${content.length}`
  return { delivered: false, error: failure('SINK_REFUSED', what), retryable: false }
}

function nacked(destination: string, isOutage: boolean): Delivery {
  const what = `RabbitMQ refused the message for ${destination}: is a queue full, or its quorum lost?`
  const refused = { delivered: false as const, error: failure('SINK_REFUSED', what) }
  return isOutage ? { ...refused, unreachable: true } : refused
}

/** Publishes a message on a channel of its own. If the broker closes that channel, this message is the reason. */
async function publishAlone({ connected, exchange }: Publishing, item: Item): Promise<Exclude<Answer, typeof SUSPECT>> {
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

/** Closes idle channels. This bounds their number, because schedules may name any number of exchanges. */
async function closeIdle(channels: Map<string, Promise<ExchangeChannel>>): Promise<void> {
  for (const [exchange, opened] of channels) {
    const channel = await opened
    if (!channel.isIdle || channels.get(exchange) !== opened) continue
    channels.delete(exchange)
    return await channel.close()
  }
}
