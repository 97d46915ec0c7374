/**
 * Sends events as webhooks: one HTTP POST each, signed by the Standard Webhooks scheme, over keep-alive connections.
 *
 *     webhook({ url: 'https://shop.example/hooks', secrets: [process.env.HOOK_SECRET] })
 *
 * Any 2xx status is an acknowledgement. Every other status, including a redirect, is a failure and is retried. 410
 * means that the receiver wants no more events, so the schedule is paused. `address-guard.ts` checks the addresses of
 * receivers.
 */
import { setMaxListeners } from 'node:events'
import type { Json } from '../../core/checks/json.js'
import { checkOptions } from '../../core/checks/known-options.js'
import { failure, quote } from '../../core/errors.js'
import {
  DELIVERED,
  DELIVERY_OPTIONS,
  type Delivery,
  type DeliveryOptions,
  deliveryOptions,
  type Sink,
  type SinkMessage,
} from '../../core/sink.js'
import { type Encode, encoder, FORMAT_OPTIONS, type FormatOptions, headerText } from '../message.js'
import { chosenKey, type OverrideOptions } from '../overrides.js'
import { AddressGuard, type Resolve } from './address-guard.js'
import { keepAliveAgents } from './agents.js'
import { refusedOutcome, unreachableOutcome } from './outcomes.js'
import { type Agents, post } from './post.js'
import { type FindReceiver, parseHeaders, parseUrl, type Receiver, receiverFinder } from './receiver.js'
import { type Contact, ReceiverLimits, SILENCES } from './receiver-limits.js'
import { parseSecrets, type Secret, signatures } from './signature.js'
import { SlowCalls } from './slow-calls.js'

export { receiverSecret } from './signature.js'

export interface WebhookOptions extends DeliveryOptions, FormatOptions {
  /** The receiver's URL. Without it every schedule must give one, as `toOptions.url`. */
  readonly url?: string
  /**
   * Secrets `whsec_…` (HMAC) or `whsk_…` (Ed25519), from the environment. During a rotation there may be several, and each
   * signs. Without any, requests are not signed. A receiver outside of `url` does not get the sink's `whsec_…`, but one that is
   * derived for its origin: `receiverSecret` and `belfry webhook-secret` compute it.
   */
  readonly secrets?: readonly (string | undefined)[]
  /**
   * Headers of requests to the sink's `url` and below it, such as `authorization`. Without a `url` they go to all
   * receivers, so they may hold no secrets.
   */
  readonly headers?: Readonly<Record<string, string>>
  /** The `toOptions` that schedules may set. Default: `key` unless the sink is ordered, and `url` if the sink has none. */
  readonly overrides?: OverrideOptions<'url'>
  /** Private addresses that may be called, such as `10.1.0.0/16`. Default none. */
  readonly allow?: readonly string[]
  /** Resolves host names. Default: the system's resolver. */
  readonly resolve?: Resolve
}

const KNOWN = ['url', 'secrets', 'headers', 'overrides', 'allow', 'resolve', ...FORMAT_OPTIONS, ...DELIVERY_OPTIONS]
/** Each request carries one message, so throughput comes from concurrency, not from batches. */
const PREFERRED: DeliveryOptions = { batch: 1, concurrency: 32 }
/**
 * The shares of concurrent calls that an unresponsive URL and an unresponsive host may use. Other URLs of the host may
 * still answer.
 */
const SHARES = { url: 1 / 4, host: 3 / 4 }
/** How many calls may wait for slow receivers, as a multiple of the sink's concurrent calls. */
const SLOW_CALLS = 4

export function webhook(options: WebhookOptions): Sink {
  const where = 'webhook()'
  checkOptions(options, KNOWN, where)
  const { url, secrets = [], headers = {}, allow = [], resolve } = options
  for (const [name, list] of Object.entries({ secrets, allow })) {
    if (!Array.isArray(list)) throw failure('OPTION_INVALID', `${where}: ${name} must be a list`)
  }
  if (resolve !== undefined && typeof resolve !== 'function') {
    throw failure('OPTION_INVALID', `${where}: resolve is ${quote(resolve)}; it must be a function`)
  }
  const guard = new AddressGuard(allow, resolve)
  const own = { headers: parseHeaders(headers, url !== undefined) }
  const located = url === undefined ? own : { ...own, url: parseUrl(url, guard, 'sink') }
  return new Webhook({
    guard,
    find: receiverFinder(located, options.overrides, guard, options.ordered === true),
    secrets: parseSecrets(secrets, where),
    encode: encoder(options, { attributePrefix: 'ce-' }, where),
    delivery: deliveryOptions(options, PREFERRED),
  })
}

interface Parts {
  readonly guard: AddressGuard
  readonly find: FindReceiver
  readonly secrets: readonly Secret[]
  readonly encode: Encode
  readonly delivery: DeliveryOptions
}

class Webhook implements Sink {
  readonly delivery: DeliveryOptions
  readonly #parts: Parts
  readonly #agents: Agents
  readonly #urls: ReceiverLimits
  readonly #hosts: ReceiverLimits
  /** The number of calls in a row that the sink's own receiver did not answer. */
  #silences = 0
  readonly #slow: SlowCalls

  constructor(parts: Parts) {
    this.#parts = parts
    this.delivery = parts.delivery
    const { concurrency = 1, batch = 1 } = parts.delivery
    const most = concurrency * batch
    this.#urls = new ReceiverLimits(most * SHARES.url, most)
    this.#hosts = new ReceiverLimits(most * SHARES.host, most)
    this.#slow = new SlowCalls(most * SLOW_CALLS)
    this.#agents = keepAliveAgents(parts.guard.lookup)
  }

  check(options: Json, key?: string): void {
    this.#parts.find(options, key)
  }

  async deliver(
    messages: readonly SinkMessage[],
    signal: AbortSignal,
    onSlow = () => {},
  ): Promise<readonly Delivery[]> {
    // Every message of the batch listens while it is sent. Node.js takes more than ten listeners for a leak.
    setMaxListeners(0, signal)
    const outcomes = new Array<Delivery>(messages.length)
    const sendInOrder = async (indexes: readonly number[]) => {
      for (const at of indexes) outcomes[at] = await this.#send(messages[at] as SinkMessage, signal, onSlow)
    }
    await Promise.all(byKey(messages).map(sendInOrder))
    return outcomes
  }

  async close(): Promise<void> {
    this.#agents.http.destroy()
    this.#agents.https.destroy()
  }

  async #send(message: SinkMessage, signal: AbortSignal, onSlow: () => void): Promise<Delivery> {
    let to: Receiver
    try {
      to = this.#parts.find(message.options, chosenKey(message))
    } catch (error) {
      return { delivered: false, error, retryable: false }
    }
    // The engine limits calls to the sink's own receiver, by probes after an outage. Calls to receivers of schedules
    // are limited here.
    if (to.isOwn) return this.#countSilence(await this.#post(to, message, signal), signal)
    const broken = new AbortController()
    const follow = () => broken.abort(signal.reason)
    signal.addEventListener('abort', follow)
    if (signal.aborted) follow()
    const slow = this.#slow.begin(to.url.origin, onSlow, (why) => broken.abort(why))
    try {
      return await this.#callReceiver(to, message, { signal: broken.signal, onSlow: slow.isSlow })
    } finally {
      slow.end()
      signal.removeEventListener('abort', follow)
    }
  }

  /** Calls a receiver that the schedule names, within the limits of its URL and of its host. */
  async #callReceiver(
    to: Receiver,
    message: SinkMessage,
    call: { readonly signal: AbortSignal; readonly onSlow: () => void },
  ): Promise<Delivery> {
    const { origin, pathname } = to.url
    const { outcome } = await this.#urls.call(origin + pathname, to.url, call, () =>
      this.#hosts.call(origin, to.url, call, async () => {
        const answer = await this.#post(to, message, call.signal)
        return { outcome: answer, contact: contactOf(answer, call.signal) }
      }),
    )
    return outcome
  }

  /** After several timeouts in a row the receiver counts as unreachable, although it accepts connections. */
  #countSilence(outcome: Delivery, signal: AbortSignal): Delivery {
    const contact = contactOf(outcome, signal)
    if (contact === 'answered') this.#silences = 0
    if (contact !== 'silent' || outcome.delivered) return outcome
    this.#silences += 1
    return this.#silences < SILENCES ? outcome : { ...outcome, unreachable: true }
  }

  async #post(to: Receiver, message: SinkMessage, signal: AbortSignal): Promise<Delivery> {
    const { headers, body } = this.#encode(message, to)
    for (let isFirst = true; ; isFirst = false) {
      if (signal.aborted) return { delivered: false, error: signal.reason }
      const posted = post(to.address, headers, body, this.#agents)
      const cancel = () => posted.cancel(signal.reason)
      signal.addEventListener('abort', cancel)
      try {
        const answer = await posted.answer
        const isAccepted = answer.status >= 200 && answer.status < 300
        return isAccepted ? DELIVERED : refusedOutcome(answer, to, message)
      } catch (error) {
        // The receiver closed a keep-alive connection just as it was used: retry once on a new one.
        if (isFirst && wasKeepAlive(error)) continue
        return signal.aborted ? { delivered: false, error: signal.reason } : unreachableOutcome(error, to)
      } finally {
        signal.removeEventListener('abort', cancel)
      }
    }
  }

  /**
   * Encodes a message. The timestamp is the store's time, because receivers refuse old timestamps and an instance's
   * clock may be wrong by hours.
   */
  #encode(message: SinkMessage, { lines, url, isTrusted }: Receiver): { headers: readonly string[]; body: string } {
    const { encode, secrets } = this.#parts
    const { contentType, body, headers: beside } = encode(message)
    const id = headerText(message.id)
    const seconds = Math.floor(message.startedAt / 1_000)
    const headers = [...lines, 'content-type', contentType, 'content-length', String(Buffer.byteLength(body))]
    headers.push('webhook-id', id, 'webhook-timestamp', String(seconds))
    for (const name in beside) headers.push(name, headerText(beside[name] ?? ''))
    if (secrets.length > 0) {
      const origin = isTrusted ? undefined : url.origin
      headers.push('webhook-signature', signatures(secrets, { id, seconds, body, origin }))
    }
    return { headers, body }
  }
}

/** Groups the indexes of messages by key. Messages of one key are sent in order, those of different keys concurrently. */
function byKey(messages: readonly SinkMessage[]): readonly (readonly number[])[] {
  const keys = new Map<string, number[]>()
  for (const [at, { key }] of messages.entries()) {
    const indexes = keys.get(key)
    if (indexes === undefined) keys.set(key, [at])
    else indexes.push(at)
  }
  return [...keys.values()]
}

function contactOf(outcome: Delivery, signal: AbortSignal): Contact {
  if (outcome.delivered) return 'answered'
  const { code, name } = outcome.error as { readonly code?: unknown; readonly name?: unknown }
  if (signal.aborted && outcome.error === signal.reason) {
    return code === 'TIMEOUT' || name === 'TimeoutError' ? 'silent' : 'unknown'
  }
  if (code === 'SINK_REFUSED') return 'answered'
  return code === 'SINK_UNREACHABLE' ? 'silent' : 'unknown'
}

function wasKeepAlive(error: unknown): boolean {
  const { code, reusedSocket } = error as { readonly code?: string; readonly reusedSocket?: boolean }
  return reusedSocket === true && (code === 'ECONNRESET' || code === 'EPIPE')
}
