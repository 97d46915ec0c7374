/**
 * Sends events to NATS JetStream. A message counts as delivered when a stream has stored it. `Nats-Msg-Id` is
 * `dedupeId`, which is unique across stores, so the server drops repetitions within the stream's duplicate window (two
 * minutes by default). A dropped repetition counts as delivered.
 *
 * The NATS client queues messages published without a connection, and sends them later. So while it reconnects, the
 * sink publishes nothing.
 */

import { checkOptions } from '../../core/checks/known-options.js'
import { failure } from '../../core/errors.js'
import {
  DELIVERED,
  DELIVERY_OPTIONS,
  type Delivery,
  type DeliveryOptions,
  deliveryOptions,
  type Sink,
  type SinkMessage,
} from '../../core/sink.js'
import { Link } from '../broker-link.js'
import { encoder, FORMAT_OPTIONS, type FormatOptions, headerText } from '../message.js'
import { checkHeaders, checkText, chosenKey, type OverrideOptions, overrideParser, type Rule } from '../overrides.js'
import { requiredPackage } from '../required-package.js'
import { type FindStream, refusal } from './refusal.js'
import { isSilent } from './silent-server.js'

export interface NatsOptions extends DeliveryOptions, FormatOptions {
  /** The subject of events, covered by a stream. A schedule may name another that `overrides` allows. */
  readonly subject: string
  /** URLs of servers; @nats-io/transport-node connects to them. */
  readonly servers?: string | readonly string[]
  /** Your own connection, instead of `servers`. The sink never closes it. */
  readonly connection?: NatsConnection
  /** Other options of the client: `user`, `pass`, `token`, `authenticator`, `tls`. */
  readonly client?: Readonly<Record<string, unknown>>
  /** Headers of every message. */
  readonly headers?: Readonly<Record<string, string>>
  /** The `toOptions` that schedules may set. Default: `key` for a sink that is not ordered, else none. */
  readonly overrides?: OverrideOptions<'subject'>
}

/** The methods that the sink calls, besides those that @nats-io/jetstream calls. */
export interface NatsConnection {
  isClosed(): boolean
  closed(): Promise<unknown>
  status(): AsyncIterable<{ readonly type: string }>
  close(): Promise<void>
}

interface NatsHeaders {
  set(name: string, value: string): void
}

interface JetStream {
  publish(
    subject: string,
    payload: string,
    options: { msgID: string; headers: NatsHeaders; timeout: number },
  ): Promise<unknown>
  jetstreamManager(checkApi: boolean): Promise<{ readonly streams: { find(subject: string): Promise<string> } }>
}

interface Connected {
  readonly connection: NatsConnection
  readonly stream: JetStream
  /** The client has lost its server and is reconnecting. */
  isReconnecting: boolean
  /** Called on a disconnect. Messages that were published before get no answer. */
  readonly onDisconnect: Set<() => void>
}

interface Clients {
  readonly connect: (options: object) => Promise<NatsConnection>
  readonly headers: () => NatsHeaders
  readonly jetstream: (connection: NatsConnection) => JetStream
}

const OWN = ['subject', 'servers', 'connection', 'client', 'headers', 'overrides']
const PUBLISH_TIMEOUT_MS = 5_000
const LONGEST_PAUSE_MS = 2_000
const MOST_RECONNECTS = 10
/** The interval of pings. A dead server is noticed after two intervals. */
const PING_MS = 3_000
/** How long a server may take to send INFO, which it normally sends at once. */
const INFO_MS = 2_000
const BROKER = 'the NATS server'

/** A subject to publish to. Wildcards and empty tokens are for subscriptions only. */
const subjectName: Rule = (text) =>
  /^[^\s.*>]+(\.[^\s.*>]+)*$/.test(text) && text.length <= 255
    ? undefined
    : 'a subject to publish to has parts between dots, without spaces, "*" and ">"'

/**
 * Refuses subjects that control servers (`$JS.API.…`, `$SYS.…`, `$KV.…`) or carry answers to requests. `prefix` is the
 * client's own prefix of answers.
 */
function controlSubject(prefix: unknown): Rule {
  const beginnings = ['$', '_inbox', '_r_', '_gr_', ...(typeof prefix === 'string' ? [prefix.toLowerCase()] : [])]
  return (text) =>
    beginnings.some((beginning) => text.toLowerCase().startsWith(beginning))
      ? 'it controls the server or carries answers'
      : undefined
}

export function nats(options: NatsOptions): Sink {
  const where = 'nats()'
  checkOptions(options, [...OWN, ...DELIVERY_OPTIONS, ...FORMAT_OPTIONS], where)
  const subject = checkText(options.subject, subjectName, 'subject', where)
  const encode = encoder(options, { attributePrefix: 'ce-' }, where)
  const overridden = overrideParser(options.overrides, {
    where: 'a NATS sink',
    fields: { subject: { rule: subjectName, never: controlSubject(options.client?.inboxPrefix) } },
    headers: { own: checkHeaders(options.headers, where), reserved: /^kv-/ },
    isKeyHarmless: options.ordered !== true,
  })
  const clients: Clients = {
    ...requiredPackage<Pick<Clients, 'connect' | 'headers'>>('@nats-io/transport-node', where),
    jetstream: requiredPackage<Pick<Clients, 'jetstream'>>('@nats-io/jetstream', where).jetstream,
  }
  const link = linkTo(options, clients, where)

  async function publish(stream: JetStream, message: SinkMessage, findStream: FindStream): Promise<Delivery> {
    const over = overridden(message.options, chosenKey(message))
    const to = over.texts.subject ?? subject
    const { contentType, body, headers: attributes } = encode(message)
    const all = clients.headers()
    for (const [name, value] of Object.entries(over.headers)) all.set(name, value)
    for (const [name, value] of Object.entries(attributes)) all.set(name, headerText(value))
    all.set('content-type', contentType)
    try {
      await stream.publish(to, body, { msgID: message.dedupeId, headers: all, timeout: PUBLISH_TIMEOUT_MS })
      return DELIVERED
    } catch (error) {
      return await refusal(error, to, message, findStream)
    }
  }

  return {
    delivery: deliveryOptions(options, { batch: 500 }),
    check: (given, key) => void overridden(given, key),
    open: () => link.open(),
    close: () => link.close(),
    deliver: (messages, signal) =>
      link.deliver(messages.length, signal, async (connected, settle) => {
        if (connected.isReconnecting) throw connectionLost()
        const findStream = streamFinder(connected.stream)
        const publishing = messages.map((message, at) =>
          publish(connected.stream, message, findStream).then(
            (outcome) => settle(at, outcome),
            (error: unknown) => settle(at, { delivered: false, error, retryable: false }),
          ),
        )
        await whileConnected(connected, Promise.all(publishing))
      }),
  }
}

function connectionLost(): Error {
  return failure('SINK_UNREACHABLE', `${BROKER} is unreachable: the connection is lost`)
}

function whileConnected({ onDisconnect }: Connected, work: Promise<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const lost = () => reject(connectionLost())
    onDisconnect.add(lost)
    work.then(resolve, reject).finally(() => onDisconnect.delete(lost))
  })
}

/** Returns a lookup of streams that asks for each subject at most once per call of `deliver`. */
function streamFinder(stream: JetStream): FindStream {
  const known = new Map<string, Promise<string>>()
  return (subject) => {
    const found = known.get(subject) ?? stream.jetstreamManager(false).then(({ streams }) => streams.find(subject))
    known.set(subject, found)
    return found
  }
}

function linkTo({ servers, connection, client }: NatsOptions, clients: Clients, where: string): Link<Connected> {
  if ((servers === undefined) === (connection === undefined)) {
    throw failure('OPTION_INVALID', `${where}: give either servers, or your own connection`)
  }
  const watched = (made: NatsConnection, lost: () => void): Connected => {
    const stream = clients.jetstream(made)
    const connected: Connected = { connection: made, stream, isReconnecting: false, onDisconnect: new Set() }
    void made.closed().then(lost, lost)
    void watch(connected).catch(() => {})
    return connected
  }
  if (connection !== undefined) {
    if (typeof connection?.closed !== 'function' || typeof connection.status !== 'function') {
      throw failure('OPTION_INVALID', `${where}: connection is not a connection of @nats-io/transport-node`)
    }
    const connect = async (lost: () => void) => {
      if (connection.isClosed()) throw new Error('the connection that the sink was given is closed')
      return watched(connection, lost)
    }
    return new Link({ broker: BROKER, owned: false, connect, end: () => {} })
  }
  const all = typeof servers === 'string' ? [servers] : [...(servers ?? [])]
  const settings = {
    name: 'belfry',
    timeout: PUBLISH_TIMEOUT_MS,
    pingInterval: PING_MS,
    ...client,
    // The client first tries the other servers of a cluster. After that the link opens a new connection.
    maxReconnectAttempts: MOST_RECONNECTS,
    reconnectDelayHandler: () => Math.random() * LONGEST_PAUSE_MS,
  }
  const tls = client?.tls as { readonly handshakeFirst?: boolean } | null | undefined
  const connect = async (lost: () => void) => {
    const silent = await Promise.all(all.map((server) => tls?.handshakeFirst !== true && isSilent(server, INFO_MS)))
    const responsive = all.filter((_, at) => silent[at] !== true)
    if (responsive.length === 0) throw new Error('it accepts connections and sends nothing')
    return watched(await clients.connect({ ...settings, servers: responsive }), lost)
  }
  return new Link({ broker: BROKER, owned: true, connect, end: ({ connection: made }) => made.close() })
}

async function watch(connected: Connected): Promise<void> {
  for await (const { type } of connected.connection.status()) {
    if (type === 'reconnect') connected.isReconnecting = false
    if (type !== 'disconnect') continue
    connected.isReconnecting = true
    for (const lost of connected.onDisconnect) lost()
  }
}
