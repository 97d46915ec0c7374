/**
 * The channel of one exchange. When RabbitMQ rejects a message it closes the channel, and all unconfirmed messages on
 * it are lost. Each exchange has its own channel, so an exchange that does not exist affects only its own messages.
 */
import { failure, quote } from '../../core/errors.js'
import { DELIVERED, type Delivery } from '../../core/sink.js'
import type { AmqpChannel, AmqpConnection } from './amqp.js'

export interface Publication {
  readonly id: string
  readonly routingKey: string
  readonly content: Buffer
  readonly properties: object
}

/**
 * The broker closed the channel because it rejected one of the messages in flight, perhaps another one. The sink sends
 * this message again on a channel of its own, where the answer applies to it alone.
 */
export const SUSPECT = Symbol('suspect')

/** The broker sent a nack, without a reason: a queue is full, or has lost its quorum. */
export const NACKED = Symbol('nacked')

export type Answer = Delivery | typeof SUSPECT | typeof NACKED

const ACCESS_REFUSED = 403
const NOT_FOUND = 404
const PRECONDITION_FAILED = 406

export class ExchangeChannel {
  readonly #exchange: string
  readonly #channel: AmqpChannel
  /** Ids of messages that the broker returned as unroutable. Their confirmation follows. */
  readonly #returned = new Set<string>()
  #reason: unknown
  #closed = false
  #inFlight = 0

  private constructor(exchange: string, channel: AmqpChannel, closed: () => void) {
    this.#exchange = exchange
    this.#channel = channel
    channel.on('error', (error) => {
      this.#reason = error
      this.#closed = true
      closed()
    })
    channel.on('close', () => {
      this.#closed = true
      closed()
    })
    channel.on('return', ({ properties: { messageId, headers } }) => {
      this.#returned.add(String(messageId ?? headers?.['belfry-id']))
    })
  }

  static async open(connection: AmqpConnection, exchange: string, closed: () => void): Promise<ExchangeChannel> {
    return new ExchangeChannel(exchange, await connection.createConfirmChannel(), closed)
  }

  get isIdle(): boolean {
    return this.#inFlight === 0
  }

  async close(): Promise<void> {
    await this.#channel.close()
  }

  /** Resolves when the broker has confirmed or rejected the message. */
  publish(publication: Publication): Promise<Answer> {
    this.#inFlight += 1
    return new Promise<Answer>((resolve) => {
      const { id, routingKey, content, properties } = publication
      const confirmed = (error: unknown) => {
        if (this.#returned.delete(id)) resolve(this.#unroutable(routingKey))
        else resolve(error === null || error === undefined ? DELIVERED : this.#failure(error))
      }
      try {
        this.#channel.publish(this.#exchange, routingKey, content, properties, confirmed)
      } catch (error) {
        resolve(this.#closed ? this.#failure(error) : { delivered: false, error, retryable: false })
      }
    }).finally(() => {
      this.#inFlight -= 1
    })
  }

  /** The size limit that the broker named, if it closed the channel because of a larger message. */
  get mostBytes(): number | undefined {
    const said = this.#reason instanceof Error ? this.#reason.message : ''
    const found = /larger than (?:the )?(?:configured )?max(?:imum)? size (\d+)/.exec(said)
    return found === null ? undefined : Number(found[1])
  }

  /** The outcome of the message because of which the broker closed the channel. */
  refusal(): Delivery {
    const said = this.#reason instanceof Error ? this.#reason.message : String(this.#reason)
    const what = `RabbitMQ refuses this message for exchange ${quote(this.#exchange)}: ${said}`
    return { delivered: false, error: failure('SINK_REFUSED', what, { cause: this.#reason }), retryable: false }
  }

  #failure(error: unknown): Answer {
    const code = (this.#reason as { code?: unknown } | undefined)?.code
    if (code === PRECONDITION_FAILED) return SUSPECT
    if (code === NOT_FOUND || code === ACCESS_REFUSED) return this.refusal()
    if (!this.#closed) return NACKED
    const said = error instanceof Error ? error.message : String(error)
    const what = `the connection to RabbitMQ was lost before the message was confirmed: ${said}`
    return { delivered: false, error: failure('SINK_UNREACHABLE', what, { cause: error }), unreachable: true }
  }

  /** The outcome of a message that no queue gets. A retry may succeed, because consumers create and delete queues. */
  #unroutable(routingKey: string): Delivery {
    const what = `no queue gets messages for ${quote(routingKey)} from exchange ${quote(this.#exchange)}: bind one`
    return { delivered: false, error: failure('SINK_REFUSED', what) }
  }
}
