/** Connections of amqplib: the calls that are made of them, and how they are made. */
import { sleep, systemClock } from '../../core/clock.js'
import { failure, quote } from '../../core/errors.js'
import { peer } from '../peer.js'
import type { ExchangeChannel } from './exchange-channel.js'

export interface AmqpConnection {
  createConfirmChannel(): Promise<AmqpChannel>
  on(event: 'error' | 'close' | 'blocked' | 'unblocked', listener: (what: unknown) => void): unknown
  close(): Promise<unknown>
  /** Where amqplib keeps the socket: one that the broker does not read from any more is ended by us. */
  readonly connection?: unknown
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
  /** The most bytes that the broker takes in one message, once it has said so. */
  mostBytes?: number | undefined
  /** Told when that begins: what was published before may not be confirmed for as long as it lasts. */
  readonly waiting: Set<() => void>
}

const CONNECT_MS = 5_000
const CLOSE_MS = 1_000
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
    const connected: Connected = { connection, channels: new Map(), waiting: new Set() }
    // Whoever waits for a confirmation hears of it from the channel; without a listener it would end the process.
    connection.on('error', () => {})
    connection.on('close', lost)
    connection.on('blocked', (reason) => {
      connected.blocked = (reason as { reason?: string } | undefined)?.reason ?? String(reason)
      for (const tell of connected.waiting) tell()
    })
    connection.on('unblocked', () => {
      connected.blocked = undefined
    })
    return connected
  }
}

/** Publishes, until the broker says that it takes nothing; what it was given before may arrive later all the same. */
export async function whileUnblocked(connected: Connected, publish: () => Promise<unknown>): Promise<void> {
  const why = () => failure('SINK_UNREACHABLE', `RabbitMQ takes no messages at the moment: ${connected.blocked}`)
  if (connected.blocked !== undefined) throw why()
  let tell = () => {}
  const blocked = new Promise<never>((_, reject) => {
    tell = () => reject(why())
  })
  connected.waiting.add(tell)
  try {
    await Promise.race([publish(), blocked])
  } finally {
    connected.waiting.delete(tell)
  }
}

/** A broker that is blocked or hangs does not answer a goodbye: then the socket is closed, or it would stay for ever. */
export async function disconnect({ connection }: Connected): Promise<void> {
  const enough = new AbortController()
  const closed = connection.close().catch(() => {})
  await Promise.race([closed, sleep(systemClock, CLOSE_MS, enough.signal)])
  enough.abort()
  const { stream } = (connection.connection ?? {}) as { readonly stream?: { destroy?(): unknown } }
  stream?.destroy?.()
}

/** Each time the next node is tried first, so that one which hangs is not met again at once. */
function connectTo(url: unknown, where: string): () => Promise<AmqpConnection> {
  const urls = (Array.isArray(url) ? url : [url]).map((each) => checkUrl(each, where))
  if (urls.length === 0) throw failure('OPTION_INVALID', `${where}: url is an empty list; name at least one node`)
  const { connect } = peer<{ connect(url: string, options: object): Promise<AmqpConnection> }>('amqplib', where)
  const settings = { timeout: CONNECT_MS, noDelay: true, clientProperties: { connection_name: 'belfry' } }
  let next = 0
  return async () => {
    const errors: string[] = []
    for (const _ of urls) {
      const { href, host } = urls[next] as URL
      next = (next + 1) % urls.length
      try {
        return await connect(href, settings)
      } catch (error) {
        errors.push(`${host}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    throw new Error(errors.join('; '))
  }
}

function checkUrl(url: unknown, where: string): URL {
  const known = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  if (known === undefined || !['amqp:', 'amqps:'].includes(known.protocol)) {
    // Not the whole of it: there may be a password inside.
    const shown = known === undefined ? quote(typeof url) : known.protocol
    throw failure('OPTION_INVALID', `${where}: ${shown} is no URL of a RabbitMQ: write amqp://host`)
  }
  if (!known.searchParams.has('heartbeat')) known.searchParams.set('heartbeat', String(HEARTBEAT_SECONDS))
  return known
}
