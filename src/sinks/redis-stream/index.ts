/**
 * Events to Redis Streams. A message counts as delivered when it is in the stream; one that is there already, because the
 * answer to an earlier attempt was lost, is not added again (within `dedupe`). Old entries are trimmed, so that a stream
 * that nobody reads does not fill the server.
 */
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
import { type Duration, durationMs } from '../../time/duration.js'
import { type Addressed, byDestination } from '../by-destination.js'
import { Link, type Settle } from '../link.js'
import { encoder, FORMAT_OPTIONS, type FormatOptions } from '../message.js'
import { checkHeaders, checkText, overrides, type Rule } from '../overrides.js'
import { addEntries, type Entry } from './add-entries.js'
import {
  type Connected,
  clientMaker,
  connected,
  connectedInTime,
  inTime,
  isClient,
  type RedisClient,
} from './clients.js'
import { masterFinder } from './sentinel.js'

export type { IoRedis, NodeRedis, NodeRedisCluster, NodeRedisSentinel, RedisClient } from './clients.js'

export interface RedisStreamOptions extends DeliveryOptions, FormatOptions {
  /** The stream's key; a schedule may name another (`toOptions: { stream }`). */
  readonly stream: string
  /** A client of @redis/client or ioredis, single, cluster or sentinel. It is connected if need be, and never closed. */
  readonly client?: RedisClient
  /** Or where the server is: a client is made by whichever of the two is installed. */
  readonly url?: string
  /** Where Sentinels are. The host of `url` is then the name of the master: `redis://user:password@orders`. */
  readonly sentinels?: readonly string[]
  /** Or where some nodes of a cluster are. */
  readonly nodes?: readonly string[]
  /** How many entries the stream keeps, about. Default 1,000,000; 0 keeps all. */
  readonly maxLength?: number
  /** For how long an id is not added again. Default 10 minutes; 0 turns it off. It costs about 100 bytes an entry. */
  readonly dedupe?: Duration
  /** Fields of every entry. */
  readonly headers?: Readonly<Record<string, string>>
}

interface Item extends Entry {
  readonly at: number
}

const OWN = ['stream', 'client', 'url', 'sentinels', 'nodes', 'maxLength', 'dedupe', 'headers']
const WHOM = 'the Redis server'
/** A server that has not answered by then hangs. */
const PATIENCE_MS = 5_000
/** A server does nothing else while it adds these: so many, and so many characters. */
const MOST_ENTRIES = 500
const MOST_TEXT = 1_000_000
/** Fields that are the entry's own, in this order. */
const RESERVED = ['id', 'key', 'data', 'content-type']
/** The first word of an answer that another attempt would get again: what is there is no stream. */
const FINAL = ['WRONGTYPE', 'NOPERM']
/** Of an answer of a server that is no master any more: whoever has its name by now is asked over a new connection. */
const DEMOTED = ['READONLY', 'MASTERDOWN']

/** Braces are the hash tag of a cluster, or nothing. */
const streamKey: Rule = (text) => {
  if (text === '' || text.length > 1_024) return 'a key has 1 to 1024 characters'
  return /^[^{}]*(\{[^{}]+\}[^{}]*)?$/.test(text) ? undefined : 'braces are for one hash tag: {tag}'
}

export function redisStream(options: RedisStreamOptions): Sink {
  const where = 'redisStream()'
  checkOptions(options, [...OWN, ...DELIVERY_OPTIONS, ...FORMAT_OPTIONS], where)
  const stream = checkText(options.stream, streamKey, 'stream', where)
  const headers = checkFields(checkHeaders(options.headers, where), where)
  const [ownNames, ownValues] = [[...RESERVED, ...Object.keys(headers)], Object.values(headers)]
  const settings = { windowMs: durationMs(options.dedupe ?? '10m'), maxLength: checkLength(options.maxLength, where) }
  const encode = encoder(options, { attributePrefix: 'ce_' }, where)
  const parse = overrides({ stream: streamKey }, 'a Redis Streams sink')
  const overridden = (given: unknown) => {
    const over = parse(given)
    checkFields(over.headers, 'a Redis Streams sink')
    return over
  }
  const link = linkTo(options, where)

  function itemFor(message: SinkMessage, at: number): Addressed<Item> {
    const over = overridden(message.options)
    const { contentType, body, headers: attributes } = encode(message)
    const [names, values] = [[...ownNames], [message.id, message.key, body, contentType, ...ownValues]]
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
        const answers = await inTime(addEntries(redis.send, to, settings, part), PATIENCE_MS)
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
    check: (given) => void overridden(given),
    open: () => link.open(),
    close: () => link.close(),
    deliver: (messages, signal) =>
      link.deliver(messages.length, signal, async (known, settle) => {
        const redis = known.isReady() ? known : await another(link, known)
        const streams = byDestination(messages, itemFor, settle)
        await Promise.all([...streams].map(([to, items]) => addAll(redis, to, items, settle)))
      }),
  }
}

/** Entries of one script: not too many, nor too much, with fields of the same names. */
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

/** A connection in the place of one that was lost. The user's own client looks for its server by itself. */
async function another(link: Link<Connected>, lost: Connected): Promise<Connected> {
  link.lose(lost)
  const redis = await link.get()
  if (redis.isReady()) return redis
  throw failure('SINK_UNREACHABLE', `${WHOM} cannot be reached: the connection is lost`)
}

function outcomeOf(answer: string | undefined, stream: string): Delivery {
  return answer === undefined ? DELIVERED : failureOf(new Error(answer), stream)
}

function failureOf(cause: unknown, stream: string): Delivery {
  const said = cause instanceof Error ? cause.message : String(cause)
  const word = firstWord(cause)
  if (word !== undefined && FINAL.includes(word)) {
    const error = failure('SINK_REFUSED', `Redis does not add this message to ${quote(stream)}: ${said}`, { cause })
    return { delivered: false, error, retryable: false }
  }
  const error = failure('SINK_UNREACHABLE', `${WHOM} has not added the message: ${said}`, { cause })
  return { delivered: false, error, unreachable: true }
}

/** Redis names its errors by their first word; what the client itself says has none. */
function firstWord(error: unknown): string | undefined {
  return error instanceof Error ? /^-?([A-Z]{2,}) /.exec(error.message)?.[1] : undefined
}

function linkTo({ client, url, sentinels, nodes }: RedisStreamOptions, where: string): Link<Connected> {
  const given = [client, url, nodes].filter((each) => each !== undefined)
  if (given.length !== 1)
    throw failure('OPTION_INVALID', `${where}: give a client of yours, or a url, or nodes of a cluster`)
  if (client !== undefined) {
    if (!isClient(client)) throw failure('OPTION_INVALID', `${where}: client is none of @redis/client or of ioredis`)
    return new Link({ whom: WHOM, owned: false, connect: () => connected(client), end: () => {} })
  }
  if (sentinels !== undefined) {
    if (url === undefined)
      throw failure('OPTION_INVALID', `${where}: sentinels need a url, whose host names the master`)
    const findMaster = masterFinder(url, sentinels, where)
    const connect = async () => connectedInTime(clientMaker([await findMaster()], false, where)())
    return new Link({ whom: WHOM, owned: true, connect, end: (redis) => redis.end() })
  }
  const make = clientMaker(nodes ?? [url], nodes !== undefined, where)
  return new Link({ whom: WHOM, owned: true, connect: () => connectedInTime(make()), end: (redis) => redis.end() })
}

function checkFields<Fields extends object>(fields: Fields, where: string): Fields {
  const stray = Object.keys(fields).find((name) => RESERVED.includes(name))
  if (stray === undefined) return fields
  throw failure('OPTION_INVALID', `${where}: header ${quote(stray)} is a field of every entry already`)
}

function checkLength(maxLength = 1_000_000, where: string): number {
  if (Number.isSafeInteger(maxLength) && maxLength >= 0) return maxLength
  throw failure(
    'OPTION_INVALID',
    `${where}: maxLength is ${quote(maxLength)}; it must be a whole number, or 0 to keep all`,
  )
}
