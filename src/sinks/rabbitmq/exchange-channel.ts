/**
 * The channel of one exchange. A broker that has something against a message closes the channel, with all that was not
 * confirmed on it: so an exchange that there is not takes nothing with it but its own messages.
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

/** The channel was closed because of some message, of which this may be another: send it again, alone. */
export const SUSPECT = Symbol('suspect')

/** The broker did not take the message, and does not say why: a queue is full, or has lost its quorum. */
export const NACKED = Symbol('nacked')

export type Answer = Delivery | typeof SUSPECT | typeof NACKED

/** Replies of AMQP: no permission, no such exchange, and something is wrong with a message. */
const ACCESS_REFUSED = 403
const NOT_FOUND = 404
const PRECONDITION_FAILED = 406

export class ExchangeChannel {
  readonly #exchange: string
  readonly #channel: AmqpChannel
  /** Ids of messages that came back, until they are confirmed. */
  readonly #returned = new Set<string>()
  #reason: unknown
  #closed = false
  #underWay = 0

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
    return this.#underWay === 0
  }

  async close(): Promise<void> {
    await this.#channel.close()
  }

  /** Resolves when the broker has confirmed the message, or has something against it. */
  publish(publication: Publication): Promise<Answer> {
    this.#underWay += 1
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
      this.#underWay -= 1
    })
  }

  /** The most bytes that a message may have, if the channel was closed because one had more. */
  get mostBytes(): number | undefined {
    const said = this.#reason instanceof Error ? this.#reason.message : ''
    const found = /larger than (?:the )?(?:configured )?max(?:imum)? size (\d+)/.exec(said)
    return found === null ? undefined : Number(found[1])
  }

  /** What the broker closed the channel for. */
  refusal(): Delivery {
    const said = this.#reason instanceof Error ? this.#reason.message : String(this.#reason)
    const what = `RabbitMQ does not take this message for exchange ${quote(this.#exchange)}: ${said}`
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

  /** Queues come and go with those who read them: so this may be tried again. */
  #unroutable(routingKey: string): Delivery {
    const what = `no queue gets messages for ${quote(routingKey)} from exchange ${quote(this.#exchange)}: bind one`
    return { delivered: false, error: failure('SINK_REFUSED', what) }
  }
}
