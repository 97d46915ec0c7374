/**
 * Sends events to Redis Streams. A message counts as delivered when it is in the stream. If the answer to an earlier
 * attempt was lost, the message may be in the stream already; within `dedupe` it is not added again. Old entries are
 * trimmed, so that a stream without readers does not fill the server.
 */

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
import { type Duration, durationMs } from '../../time/duration.js'
import { Link, type Settle } from '../broker-link.js'
import { type Addressed, byDestination } from '../by-destination.js'
import { encoder, FORMAT_OPTIONS, type FormatOptions } from '../message.js'
import { checkHeaders, checkText, chosenKey, type OverrideOptions, overrideParser, type Rule } from '../overrides.js'
import { addEntries, type Entry, SEEN } from './add-entries.js'
import {
  type Connected,
  clientMaker,
  connected,
  connectedInTime,
  inTime,
  isClient,
  keyPrefixOf,
  type RedisClient,
} from './clients.js'
import { masterFinder } from './sentinel.js'

export type { IoRedis, NodeRedis, NodeRedisCluster, NodeRedisSentinel, RedisClient } from './clients.js'

export interface RedisStreamOptions extends DeliveryOptions, FormatOptions {
  /** The stream's key; a schedule may name another that `overrides` allows. */
  readonly stream: string
  /** Your client of @redis/client or ioredis: single, cluster or sentinel. The sink connects it if needed, and never closes it. */
  readonly client?: RedisClient
  /** The server's URL, instead of `client`. The sink makes a client with the package that is installed. */
  readonly url?: string
  /** URLs of Sentinels. The host of `url` is then the name of the master: `redis://user:password@orders`. */
  readonly sentinels?: readonly string[]
  /** URLs of some nodes of a cluster, instead of `url`. */
  readonly nodes?: readonly string[]
  /** About how many entries the stream keeps. Default 1,000,000; 0 keeps all. */
  readonly maxLength?: number
  /** For how long an event is not added again. Default 10 minutes; 0 disables it. Costs about 100 bytes an entry. */
  readonly dedupe?: Duration
  /** Fields of every entry. */
  readonly headers?: Readonly<Record<string, string>>
  /** The `toOptions` that schedules may set. Default: `key` for a sink that is not ordered, else none. */
  readonly overrides?: OverrideOptions<'stream'>
}

interface Item extends Entry {
  readonly at: number
}

const OWN = ['stream', 'client', 'url', 'sentinels', 'nodes', 'maxLength', 'dedupe', 'headers', 'overrides']
const BROKER = 'the Redis server'
const ANSWER_TIMEOUT_MS = 5_000
/** The most entries and characters that one script adds, because the server does nothing else while it runs. */
const MOST_ENTRIES = 500
const MOST_TEXT = 1_000_000
/** Fields of every entry, in this order. */
const RESERVED = ['id', 'key', 'data', 'content-type']
/** The beginning of a store's keys by default, up to the brace of the shard. */
const DEFAULT_STORE_KEYS = 'belfry:{'
/** Error codes that a retry would get again: the key is not a stream, or the user lacks a permission. */
const FINAL = ['WRONGTYPE', 'NOPERM']
/** Error codes of a demoted master. A new connection finds its successor. */
const DEMOTED = ['READONLY', 'MASTERDOWN']

/** A valid stream key. Braces may only enclose one hash tag. */
const streamKey: Rule = (text) => {
  if (text === '' || text.length > 1_024) return 'a key has 1 to 1024 characters'
  return /^[^{}]*(\{[^{}]+\}[^{}]*)?$/.test(text) ? undefined : 'braces are for one hash tag: {tag}'
}

export function redisStream(options: RedisStreamOptions): Sink {
  const where = 'redisStream()'
  checkOptions(options, [...OWN, ...DELIVERY_OPTIONS, ...FORMAT_OPTIONS], where)
  const stream = checkText(options.stream, streamKey, 'stream', where)
  const headers = checkFields(checkHeaders(options.headers, where), where)
  const settings = { windowMs: durationMs(options.dedupe ?? '10m'), maxLength: checkLength(options.maxLength, where) }
  const encode = encoder(options, { attributePrefix: 'ce_' }, where)
  const storeKeys = new Set([DEFAULT_STORE_KEYS])
  const clientPrefix = keyPrefixOf(options.client)
  /** Refuses the store's own keys on every server, because two names may mean the same server. */
  const isStoreKey: Rule = (text) => {
    const key = clientPrefix + text
    if (key.endsWith(SEEN)) return 'the sink keeps the ids of delivered events in such keys'
    return [...storeKeys].some((beginning) => key.includes(beginning)) ? "it is a key of Belfry's store" : undefined
  }
  const overridden = overrideParser(options.overrides, {
    where: 'a Redis Streams sink',
    fields: { stream: { rule: streamKey, never: isStoreKey } },
    headers: { own: headers, reserved: new RegExp(`^(?:${RESERVED.join('|')})$`) },
    isKeyHarmless: options.ordered !== true,
  })
  const link = linkTo(options, where)

  function itemFor(message: SinkMessage, at: number): Addressed<Item> {
    const over = overridden(message.options, chosenKey(message))
    const { contentType, body, headers: attributes } = encode(message)
    const [names, values] = [[...RESERVED], [message.id, message.key, body, contentType]]
    for (const more of [over.headers, attributes]) {
      for (const name in more) {
        names.push(name)
        values.push(more[name] ?? '')
      }
    }
    return { to: over.texts.stream ?? stream, item: { at, dedupeId: message.dedupeId, names, values } }
  }

  async function addAll(redis: Connected, to: string, items: readonly Item[], settle: Settle): Promise<void> {
    for (let from = 0, end = 0; from < items.length; from = end) {
      end = endOfPart(items, from)
      const part = items.slice(from, end)
      try {
        const answers = await inTime(addEntries(redis.send, to, settings, part), ANSWER_TIMEOUT_MS)
        for (const [index, { at }] of part.entries()) settle(at, outcomeOf(answers[index], to))
      } catch (error) {
        const word = firstWord(error)
        if (word === undefined || DEMOTED.includes(word)) link.lose(redis)
        for (const { at } of items.slice(from)) settle(at, failureOf(error, to))
        return
      }
    }
  }

  return {
    delivery: deliveryOptions(options, { batch: 500 }),
    check: (given, key) => void overridden(given, key),
    reserve: (keyPrefix) => void storeKeys.add(`${keyPrefix}{`),
    open: () => link.open(),
    close: () => link.close(),
    deliver: (messages, signal) =>
      link.deliver(messages.length, signal, async (known, settle) => {
        const redis = known.isReady() ? known : await reconnect(link, known)
        const streams = byDestination(messages, itemFor, settle)
        await Promise.all([...streams].map(([to, items]) => addAll(redis, to, items, settle)))
      }),
  }
}

/** The index after the entries that one script adds: within its limits, and with the same field names. */
function endOfPart(items: readonly Item[], from: number): number {
  const { names = [] } = items[from] ?? {}
  const isAlike = (item: Item) =>
    item.names.length === names.length && item.names.every((name, at) => name === names[at])
  let end = from
  let text = 0
  for (let next = items[end]; next !== undefined && end - from < MOST_ENTRIES && isAlike(next); next = items[end]) {
    for (const value of next.values) text += value.length
    if (text > MOST_TEXT && end > from) break
    end += 1
  }
  return end
}

/** Opens a new connection after a lost one. The user's own client reconnects by itself. */
async function reconnect(link: Link<Connected>, lost: Connected): Promise<Connected> {
  link.lose(lost)
  const redis = await link.get()
  if (redis.isReady()) return redis
  throw failure('SINK_UNREACHABLE', `${BROKER} is unreachable: the connection is lost`)
}

function outcomeOf(answer: string | undefined, stream: string): Delivery {
  return answer === undefined ? DELIVERED : failureOf(new Error(answer), stream)
}

function failureOf(cause: unknown, stream: string): Delivery {
  const said = cause instanceof Error ? cause.message : String(cause)
  const word = firstWord(cause)
  if (word !== undefined && FINAL.includes(word)) {
    const error = failure('SINK_REFUSED', `Redis refuses this message for ${quote(stream)}: ${said}`, { cause })
    return { delivered: false, error, retryable: false }
  }
  const error = failure('SINK_UNREACHABLE', `${BROKER} has not added the message: ${said}`, { cause })
  return { delivered: false, error, unreachable: true }
}

/** The error code of Redis, the first word of its message. Errors of the client have none. */
function firstWord(error: unknown): string | undefined {
  return error instanceof Error ? /^-?([A-Z]{2,}) /.exec(error.message)?.[1] : undefined
}

function linkTo({ client, url, sentinels, nodes }: RedisStreamOptions, where: string): Link<Connected> {
  const given = [client, url, nodes].filter((each) => each !== undefined)
  if (given.length !== 1)
    throw failure('OPTION_INVALID', `${where}: give your own client, or a url, or nodes of a cluster`)
  if (client !== undefined) {
    if (!isClient(client))
      throw failure('OPTION_INVALID', `${where}: client is not a client of @redis/client or ioredis`)
    return new Link({ broker: BROKER, owned: false, connect: () => connected(client), end: () => {} })
  }
  if (sentinels !== undefined) {
    if (url === undefined)
      throw failure('OPTION_INVALID', `${where}: sentinels need a url, whose host names the master`)
    const findMaster = masterFinder(url, sentinels, where)
    const connect = async () => connectedInTime(clientMaker([await findMaster()], false, where)())
    return new Link({ broker: BROKER, owned: true, connect, end: (redis) => redis.end() })
  }
  const make = clientMaker(nodes ?? [url], nodes !== undefined, where)
  return new Link({ broker: BROKER, owned: true, connect: () => connectedInTime(make()), end: (redis) => redis.end() })
}

function checkFields<Fields extends object>(fields: Fields, where: string): Fields {
  const stray = Object.keys(fields).find((name) => RESERVED.includes(name))
  if (stray === undefined) return fields
  throw failure('OPTION_INVALID', `${where}: header ${quote(stray)} is already a field of every entry`)
}

function checkLength(maxLength = 1_000_000, where: string): number {
  if (Number.isSafeInteger(maxLength) && maxLength >= 0) return maxLength
  throw failure(
    'OPTION_INVALID',
    `${where}: maxLength is ${quote(maxLength)}; it must be a whole number, or 0 to keep all`,
  )
}
