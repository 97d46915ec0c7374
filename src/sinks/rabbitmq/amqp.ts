/** Connects by amqplib, and declares the methods of its connections that the sink calls. */
import { sleep, systemClock } from '../../core/clock.js'
import { failure, quote } from '../../core/errors.js'
import { requiredPackage } from '../required-package.js'
import type { ExchangeChannel } from './exchange-channel.js'

export interface AmqpConnection {
  createConfirmChannel(): Promise<AmqpChannel>
  on(event: 'error' | 'close' | 'blocked' | 'unblocked', listener: (what: unknown) => void): unknown
  close(): Promise<unknown>
  /** amqplib's internal connection, which holds the socket. The sink destroys it when the broker no longer reads. */
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
  /** The reason why the broker blocks publishers now; undefined while it does not. */
  blocked?: string | undefined
  /** The size of the largest message that the broker accepts; known after an error has named it. */
  mostBytes?: number | undefined
  /** Called when the broker blocks publishers. Until it unblocks them it confirms no message that was published before. */
  readonly onBlocked: Set<() => void>
}

const CONNECT_MS = 5_000
const CLOSE_MS = 1_000
/** The interval of heartbeats. A dead broker is noticed after two intervals. */
const HEARTBEAT_SECONDS = 10

/** Connects to a URL, or by the user's function. */
export function connector(url: unknown, connect: unknown, where: string): (lost: () => void) => Promise<Connected> {
  if ((url === undefined) === (connect === undefined)) {
    throw failure('OPTION_INVALID', `${where}: give either a url, or a function that connects`)
  }
  const make = connect === undefined ? connectTo(url, where) : (connect as () => Promise<AmqpConnection>)
  if (typeof make !== 'function')
    throw failure('OPTION_INVALID', `${where}: connect is ${quote(connect)}; it must be a function`)
  return async (lost) => {
    const connection = await make()
    const connected: Connected = { connection, channels: new Map(), onBlocked: new Set() }
    // Channels report their errors to the messages in flight. Without this listener the connection's error event would
    // end the process.
    connection.on('error', () => {})
    connection.on('close', lost)
    connection.on('blocked', (reason) => {
      connected.blocked = (reason as { reason?: string } | undefined)?.reason ?? String(reason)
      for (const interrupt of connected.onBlocked) interrupt()
    })
    connection.on('unblocked', () => {
      connected.blocked = undefined
    })
    return connected
  }
}

/**
 * Publishes, and fails when the broker blocks publishers. Messages that the broker already has may still be delivered later.
 */
export async function whileUnblocked(connected: Connected, publish: () => Promise<unknown>): Promise<void> {
  const why = () => failure('SINK_UNREACHABLE', `RabbitMQ blocks publishers at the moment: ${connected.blocked}`)
  if (connected.blocked !== undefined) throw why()
  let interrupt = () => {}
  const blocked = new Promise<never>((_, reject) => {
    interrupt = () => reject(why())
  })
  connected.onBlocked.add(interrupt)
  try {
    await Promise.race([publish(), blocked])
  } finally {
    connected.onBlocked.delete(interrupt)
  }
}

/** A blocked or hanging broker does not answer close, so the socket is destroyed after a second. */
export async function disconnect({ connection }: Connected): Promise<void> {
  const enough = new AbortController()
  const closed = connection.close().catch(() => {})
  await Promise.race([closed, sleep(systemClock, CLOSE_MS, enough.signal)])
  enough.abort()
  const { stream } = (connection.connection ?? {}) as { readonly stream?: { destroy?(): unknown } }
  stream?.destroy?.()
}

/**
 * Connects to one node of a list. Each attempt starts with the next node, so that a hanging one is not tried first again.
 */
function connectTo(url: unknown, where: string): () => Promise<AmqpConnection> {
  const urls = (Array.isArray(url) ? url : [url]).map((each) => checkUrl(each, where))
  if (urls.length === 0) throw failure('OPTION_INVALID', `${where}: url is an empty list; name at least one node`)
  const { connect } = requiredPackage<{ connect(url: string, options: object): Promise<AmqpConnection> }>(
    'amqplib',
    where,
  )
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
    // The message shows only the type or protocol, because the URL may contain a password.
    const shown = known === undefined ? quote(typeof url) : known.protocol
    throw failure('OPTION_INVALID', `${where}: ${shown} is not a URL of RabbitMQ: write amqp://host`)
  }
  if (!known.searchParams.has('heartbeat')) known.searchParams.set('heartbeat', String(HEARTBEAT_SECONDS))
  return known
}
