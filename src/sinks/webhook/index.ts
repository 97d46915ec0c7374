/**
 * Events as webhooks: an HTTP POST each, signed by the Standard Webhooks scheme, over connections that are kept.
 *
 *     webhook({ url: 'https://shop.example/hooks', secrets: [process.env.HOOK_SECRET] })
 *
 * Any 2xx is an acknowledgement; anything else, a redirect included, is a failure and is tried again. 410 means that the
 * receiver wants no more: the schedule is paused. Where a request goes is guarded: see `address-guard.ts`.
 */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { failure, quote } from '../../core/errors.js'
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
import { type Encode, encoder, FORMAT_OPTIONS, type FormatOptions, headerText } from '../message.js'
import { AddressGuard, type Resolve } from './address-guard.js'
import { type Agents, type Posted, post } from './post.js'
import { type OpenReceiver, parseHeaders, parseUrl, type Receiver, receiver, receiverOf } from './receiver.js'
import { parseSecrets, signatures } from './signature.js'
import { SILENCES, Turns, type Word } from './turns.js'
import { refused, unsent } from './verdict.js'

export interface WebhookOptions extends DeliveryOptions, FormatOptions {
  /** Where events go. Without it every schedule says where, as `toOptions.url`. */
  readonly url?: string
  /** `whsec_…`, from env. Several while one takes the place of another: each signs. None: requests are not signed. */
  readonly secrets?: readonly (string | undefined)[]
  /** With every request to the sink's own origin, such as an `authorization` from env. Without a `url`: with all, and no secrets. */
  readonly headers?: Readonly<Record<string, string>>
  /** Private addresses that may be called all the same, such as `10.1.0.0/16`. Default none. */
  readonly allow?: readonly string[]
  /** How names become addresses. Default the system's way. */
  readonly resolve?: Resolve
}

const KNOWN = ['url', 'secrets', 'headers', 'allow', 'resolve', ...FORMAT_OPTIONS, ...DELIVERY_OPTIONS]
/** A request each: what makes it fast is many at a time, not many in one call. */
const PREFERRED: DeliveryOptions = { batch: 1, concurrency: 32 }
const IDLE_SOCKETS = 256
/** Long enough for a schedule that fires every minute. */
const IDLE_MS = 90_000
/** How much of the calls is for a URL that does not answer, and for a host: another URL of it may answer. */
const SHARES = { url: 1 / 4, host: 3 / 4 }

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
  const own = parseHeaders(headers, url === undefined ? 'open sink' : 'sink')
  return new Webhook({
    guard,
    own: url === undefined ? { headers: own } : receiver(parseUrl(url, guard, 'sink'), own, true),
    secrets: parseSecrets(secrets, where),
    encode: encoder(options, { attributePrefix: 'ce-' }, where),
    delivery: deliveryOptions(options, PREFERRED),
  })
}

interface Parts {
  readonly guard: AddressGuard
  readonly own: Receiver | OpenReceiver
  readonly secrets: readonly Buffer[]
  readonly encode: Encode
  readonly delivery: DeliveryOptions
}

class Webhook implements Sink {
  readonly delivery: DeliveryOptions
  readonly #parts: Parts
  readonly #agents: Agents
  readonly #urls: Turns
  readonly #hosts: Turns
  /** How often in a row the sink's own receiver was silent. */
  #silences = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.delivery = parts.delivery
    const settings = { keepAlive: true, maxFreeSockets: IDLE_SOCKETS, timeout: IDLE_MS, lookup: parts.guard.lookup }
    const { concurrency = 1, batch = 1 } = parts.delivery
    this.#urls = new Turns(concurrency * batch * SHARES.url)
    this.#hosts = new Turns(concurrency * batch * SHARES.host)
    this.#agents = { http: new HttpAgent(settings), https: new HttpsAgent(settings) }
  }

  check(options: Parameters<NonNullable<Sink['check']>>[0]): void {
    receiverOf(this.#parts.own, options, this.#parts.guard)
  }

  async deliver(messages: readonly SinkMessage[], signal: AbortSignal): Promise<readonly Delivery[]> {
    const open = new Set<Posted>()
    const cancel = () => {
      for (const posted of open) posted.cancel(signal.reason)
    }
    signal.addEventListener('abort', cancel)
    try {
      const [only] = messages
      if (only !== undefined && messages.length === 1) return [await this.#send(only, signal, open)]
      const outcomes = new Array<Delivery>(messages.length)
      await Promise.all(inTurn(messages).map((turns) => this.#sendInTurn(messages, turns, outcomes, signal, open)))
      return outcomes
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }

  async close(): Promise<void> {
    this.#agents.http.destroy()
    this.#agents.https.destroy()
  }

  async #sendInTurn(
    messages: readonly SinkMessage[],
    turns: readonly number[],
    outcomes: Delivery[],
    signal: AbortSignal,
    open: Set<Posted>,
  ): Promise<void> {
    for (const at of turns) outcomes[at] = await this.#send(messages[at] as SinkMessage, signal, open)
  }

  async #send(message: SinkMessage, signal: AbortSignal, open: Set<Posted>): Promise<Delivery> {
    let to: Receiver
    try {
      to = receiverOf(this.#parts.own, message.options, this.#parts.guard)
    } catch (error) {
      return { delivered: false, error, retryable: false }
    }
    // The sink's own is the engine's to leave alone; those that schedules name take turns.
    if (to.isOwn) return this.#heard(await this.#post(to, message, signal, open), signal)
    const { origin, pathname } = to.url
    const { outcome } = await this.#urls.take(origin + pathname, to.url, signal, () =>
      this.#hosts.take(origin, to.url, signal, async () => {
        const answer = await this.#post(to, message, signal, open)
        return { outcome: answer, word: wordIn(answer, signal) }
      }),
    )
    return outcome
  }

  /** One that takes connections and answers nothing, again and again, is as much out of reach as one that takes none. */
  #heard(outcome: Delivery, signal: AbortSignal): Delivery {
    const word = wordIn(outcome, signal)
    if (word === 'answered') this.#silences = 0
    if (word !== 'silent' || outcome.delivered) return outcome
    this.#silences += 1
    return this.#silences < SILENCES ? outcome : { ...outcome, unreachable: true }
  }

  async #post(to: Receiver, message: SinkMessage, signal: AbortSignal, open: Set<Posted>): Promise<Delivery> {
    const { headers, body } = this.#written(message, to)
    for (let isFirst = true; ; isFirst = false) {
      if (signal.aborted) return { delivered: false, error: signal.reason }
      const posted = post(to.address, headers, body, this.#agents)
      open.add(posted)
      try {
        const answer = await posted.answer
        const isTaken = answer.status >= 200 && answer.status < 300
        return isTaken ? DELIVERED : refused(answer, to, message)
      } catch (error) {
        // A receiver may close a kept connection at the very moment that it is used: that says nothing of the receiver.
        if (isFirst && wasKept(error)) continue
        return signal.aborted ? { delivered: false, error: signal.reason } : unsent(error, to)
      } finally {
        open.delete(posted)
      }
    }
  }

  /** The time is the store's: receivers refuse what seems old, and instances' clocks may be wrong by hours. */
  #written(message: SinkMessage, { lines }: Receiver): { headers: readonly string[]; body: string } {
    const { encode, secrets } = this.#parts
    const { contentType, body, headers: beside } = encode(message)
    const id = headerText(message.id)
    const seconds = Math.floor(message.startedAt / 1_000)
    const headers = [...lines, 'content-type', contentType, 'content-length', String(Buffer.byteLength(body))]
    headers.push('webhook-id', id, 'webhook-timestamp', String(seconds))
    for (const name in beside) headers.push(name, headerText(beside[name] ?? ''))
    if (secrets.length > 0) headers.push('webhook-signature', signatures(secrets, id, seconds, body))
    return { headers, body }
  }
}

/** The places of messages, those of one key together: they go one after the other, and keys side by side. */
function inTurn(messages: readonly SinkMessage[]): readonly (readonly number[])[] {
  const keys = new Map<string, number[]>()
  for (const [at, { key }] of messages.entries()) {
    const turns = keys.get(key)
    if (turns === undefined) keys.set(key, [at])
    else turns.push(at)
  }
  return [...keys.values()]
}

/** Whether a receiver was heard of. */
function wordIn(outcome: Delivery, signal: AbortSignal): Word {
  if (outcome.delivered) return 'answered'
  const { code, name } = outcome.error as { readonly code?: unknown; readonly name?: unknown }
  if (signal.aborted && outcome.error === signal.reason) {
    return code === 'TIMEOUT' || name === 'TimeoutError' ? 'silent' : 'unknown'
  }
  if (code === 'SINK_REFUSED') return 'answered'
  return code === 'SINK_UNREACHABLE' ? 'silent' : 'unknown'
}

function wasKept(error: unknown): boolean {
  const { code, reusedSocket } = error as { readonly code?: string; readonly reusedSocket?: boolean }
  return reusedSocket === true && (code === 'ECONNRESET' || code === 'EPIPE')
}
