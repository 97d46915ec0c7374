/**
 * Events to NATS JetStream. A message counts as delivered when a stream has stored it. `Nats-Msg-Id` is `dedupeId`, so that
 * the server itself drops repetitions within the stream's duplicate window (two minutes, unless the stream says otherwise),
 * and no event of another store; such a repetition is delivered.
 *
 * The client would keep what is published while there is no connection, and send it later: so nothing is given to it then.
 */
import { failure } from '../../core/errors.js'
import { checkOptions } from '../../core/known-options.js'
import {
  DELIVERED,
  DELIVERY_OPTIONS,
  type Delivery,
  type DeliveryOptions,
  deliveryOptions,
  type Sink,
  type SinkMessage,
} from '../../core/sink.js'
import { Link } from '../link.js'
import { encoder, FORMAT_OPTIONS, type FormatOptions, headerText } from '../message.js'
import { checkHeaders, checkText, overrides, type Rule } from '../overrides.js'
import { peer } from '../peer.js'
import { isMute } from './greeting.js'
import { type FindStream, refusal } from './refusal.js'

export interface NatsOptions extends DeliveryOptions, FormatOptions {
  /** Where events go: a subject that a stream listens to. A schedule may name another (`toOptions: { subject }`). */
  readonly subject: string
  /** URLs of servers: a connection is made by @nats-io/transport-node. */
  readonly servers?: string | readonly string[]
  /** A connection of yours instead. It is never closed. */
  readonly connection?: NatsConnection
  /** Whatever else the client should know: `user`, `pass`, `token`, `authenticator`, `tls`. */
  readonly client?: Readonly<Record<string, unknown>>
  /** Headers of every message. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The calls that are made of a connection, besides those that @nats-io/jetstream makes. */
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
  /** The client is looking for a server again. */
  away: boolean
  /** Told when that begins: what was published before is not answered any more. */
  readonly waiting: Set<() => void>
}

interface Clients {
  readonly connect: (options: object) => Promise<NatsConnection>
  readonly headers: () => NatsHeaders
  readonly jetstream: (connection: NatsConnection) => JetStream
}

const OWN = ['subject', 'servers', 'connection', 'client', 'headers']
/** For one message to be stored. */
const PATIENCE_MS = 5_000
const LONGEST_PAUSE_MS = 2_000
const MOST_RECONNECTS = 10
/** A server that is gone without a word is noticed after two of these. */
const PING_MS = 3_000
/** A server greets at once; one that hangs must not hold up a connection to another. */
const GREETING_MS = 2_000
const WHOM = 'the NATS server'

/** No wildcards and no empty parts: those are for who listens. */
const subjectName: Rule = (text) =>
  /^[^\s.*>]+(\.[^\s.*>]+)*$/.test(text) && text.length <= 255
    ? undefined
    : 'a subject to publish to has parts between dots, without spaces, "*" and ">"'

export function nats(options: NatsOptions): Sink {
  const where = 'nats()'
  checkOptions(options, [...OWN, ...DELIVERY_OPTIONS, ...FORMAT_OPTIONS], where)
  const subject = checkText(options.subject, subjectName, 'subject', where)
  const headers = Object.entries(checkHeaders(options.headers, where))
  const encode = encoder(options, { attributePrefix: 'ce-' }, where)
  const overridden = overrides({ subject: subjectName }, 'a NATS sink')
  const clients: Clients = {
    ...peer<Pick<Clients, 'connect' | 'headers'>>('@nats-io/transport-node', where),
    jetstream: peer<Pick<Clients, 'jetstream'>>('@nats-io/jetstream', where).jetstream,
  }
  const link = linkTo(options, clients, where)

  async function publish(stream: JetStream, message: SinkMessage, findStream: FindStream): Promise<Delivery> {
    const over = overridden(message.options)
    const to = over.texts.subject ?? subject
    const { contentType, body, headers: attributes } = encode(message)
    const all = clients.headers()
    for (const [name, value] of headers) all.set(name, value)
    for (const [name, value] of Object.entries(over.headers)) all.set(name, value)
    for (const [name, value] of Object.entries(attributes)) all.set(name, headerText(value))
    all.set('content-type', contentType)
    try {
      await stream.publish(to, body, { msgID: message.dedupeId, headers: all, timeout: PATIENCE_MS })
      return DELIVERED
    } catch (error) {
      return await refusal(error, to, message, findStream)
    }
  }

  return {
    delivery: deliveryOptions(options, { batch: 500 }),
    check: (given) => void overridden(given),
    open: () => link.open(),
    close: () => link.close(),
    deliver: (messages, signal) =>
      link.deliver(messages.length, signal, async (connected, settle) => {
        if (connected.away) throw connectionLost()
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
  return failure('SINK_UNREACHABLE', `${WHOM} cannot be reached: the connection is lost`)
}

function whileConnected({ waiting }: Connected, work: Promise<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const lost = () => reject(connectionLost())
    waiting.add(lost)
    work.then(resolve, reject).finally(() => waiting.delete(lost))
  })
}

/** For the messages of one call: each subject is looked up once. */
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
    throw failure('OPTION_INVALID', `${where}: give either servers, or a connection of yours`)
  }
  const watched = (made: NatsConnection, lost: () => void): Connected => {
    const stream = clients.jetstream(made)
    const connected: Connected = { connection: made, stream, away: false, waiting: new Set() }
    void made.closed().then(lost, lost)
    void watch(connected).catch(() => {})
    return connected
  }
  if (connection !== undefined) {
    if (typeof connection?.closed !== 'function' || typeof connection.status !== 'function') {
      throw failure('OPTION_INVALID', `${where}: connection is no connection of @nats-io/transport-node`)
    }
    const connect = async (lost: () => void) => {
      if (connection.isClosed()) throw new Error('the connection that the sink was given is closed')
      return watched(connection, lost)
    }
    return new Link({ whom: WHOM, owned: false, connect, end: () => {} })
  }
  const all = typeof servers === 'string' ? [servers] : [...(servers ?? [])]
  const settings = {
    name: 'belfry',
    timeout: PATIENCE_MS,
    pingInterval: PING_MS,
    ...client,
    // It knows the others of a cluster, and looks for them first. Then it is our turn.
    maxReconnectAttempts: MOST_RECONNECTS,
    reconnectDelayHandler: () => Math.random() * LONGEST_PAUSE_MS,
  }
  const tls = client?.tls as { readonly handshakeFirst?: boolean } | null | undefined
  const connect = async (lost: () => void) => {
    const mute = await Promise.all(all.map((server) => tls?.handshakeFirst !== true && isMute(server, GREETING_MS)))
    const speaking = all.filter((_, at) => mute[at] !== true)
    if (speaking.length === 0) throw new Error('it takes connections, and says nothing')
    return watched(await clients.connect({ ...settings, servers: speaking }), lost)
  }
  return new Link({ whom: WHOM, owned: true, connect, end: ({ connection: made }) => made.close() })
}

async function watch(connected: Connected): Promise<void> {
  for await (const { type } of connected.connection.status()) {
    if (type === 'reconnect') connected.away = false
    if (type !== 'disconnect') continue
    connected.away = true
    for (const lost of connected.waiting) lost()
  }
}
