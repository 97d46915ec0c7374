/** Connections of amqplib: the calls that are made of them, and how they are made. */
import { failure, quote } from '../../core/errors.js'
import { peer } from '../peer.js'
import type { ExchangeChannel } from './exchange-channel.js'

export interface AmqpConnection {
  createConfirmChannel(): Promise<AmqpChannel>
  on(event: 'error' | 'close' | 'blocked' | 'unblocked', listener: (what: unknown) => void): unknown
  close(): Promise<unknown>
}

export interface AmqpChannel {
  publish(
    exchange: string,
    routingKey: string,
    content: Buffer,
    properties: object,
    confirmed: (error: unknown) => void,
  ): boolean
  on(event: 'error' | 'close', listener: (error: unknown) => void): unknown
  on(event: 'return', listener: (message: AmqpReturned) => void): unknown
  close(): Promise<unknown>
}

export interface AmqpReturned {
  readonly properties: {
    readonly messageId?: unknown
    readonly headers?: Readonly<Record<string, unknown>> | undefined
  }
}

export interface Connected {
  readonly connection: AmqpConnection
  readonly channels: Map<string, Promise<ExchangeChannel>>
  /** Why the broker takes no messages at the moment. */
  blocked?: string | undefined
}

const CONNECT_MS = 5_000
/** A broker that is gone without a word is noticed after two of these. */
const HEARTBEAT_SECONDS = 10

/** How connections are made: from a URL, or by a function of the user's. */
export function connector(url: unknown, connect: unknown, where: string): (lost: () => void) => Promise<Connected> {
  if ((url === undefined) === (connect === undefined)) {
    throw failure('OPTION_INVALID', `${where}: give either a url, or a function that connects`)
  }
  const make = connect === undefined ? connectTo(url, where) : (connect as () => Promise<AmqpConnection>)
  if (typeof make !== 'function')
    throw failure('OPTION_INVALID', `${where}: connect is ${quote(connect)}; it must be a function`)
  return async (lost) => {
    const connection = await make()
    const connected: Connected = { connection, channels: new Map() }
    // Whoever waits for a confirmation hears of it from the channel; without a listener it would end the process.
    connection.on('error', () => {})
    connection.on('close', lost)
    connection.on('blocked', (reason) => {
      connected.blocked = String(reason)
    })
    connection.on('unblocked', () => {
      connected.blocked = undefined
    })
    return connected
  }
}

function connectTo(url: unknown, where: string): () => Promise<AmqpConnection> {
  const known = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  if (known === undefined || !['amqp:', 'amqps:'].includes(known.protocol)) {
    // Not the whole of it: there may be a password inside.
    const shown = known === undefined ? quote(typeof url) : known.protocol
    throw failure('OPTION_INVALID', `${where}: ${shown} is no URL of a RabbitMQ: write amqp://host`)
  }
  if (!known.searchParams.has('heartbeat')) known.searchParams.set('heartbeat', String(HEARTBEAT_SECONDS))
  const { connect } = peer<{ connect(url: string, options: object): Promise<AmqpConnection> }>('amqplib', where)
  return () =>
    connect(known.href, { timeout: CONNECT_MS, noDelay: true, clientProperties: { connection_name: 'belfry' } })
}
