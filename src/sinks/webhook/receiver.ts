/** Where a message goes, and with which headers of whose: what the sink says, and what a schedule says over it. */
import { failure, quote } from '../../core/errors.js'
import type { Json } from '../../core/json.js'
import { checkOptions } from '../../core/known-options.js'
import type { AddressGuard } from './address-guard.js'
import { type Address, addressOf } from './post.js'

export interface Receiver {
  readonly url: URL
  readonly address: Address
  readonly headers: Readonly<Record<string, string>>
  /** What a request begins with: names and values in turns. */
  readonly lines: readonly string[]
  /** The sink's own: when it cannot be reached, nobody's messages get through. */
  readonly isOwn: boolean
}

export function receiver(url: URL, headers: Readonly<Record<string, string>>, isOwn: boolean): Receiver {
  const lines = ['host', url.host, ...Object.entries({ 'user-agent': 'belfry', ...headers }).flat()]
  return { url, address: addressOf(url), headers, lines, isOwn }
}

const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/
const VALUE = /^[\t\x20-\x7E]{0,1024}$/
const MAX_HEADERS = 50
const MAX_URL = 2_048
/** Ours to set, or the connection's. */
const RESERVED =
  /^(?:host|connection|keep-alive|transfer-encoding|content-length|content-type|content-encoding|te|trailer|upgrade|expect|webhook-.*|ce-.*|belfry-.*)$/i
/** Headers that hold secrets, by their names. */
const SECRET = /^(?:(?:proxy-)?authorization|cookie|(?:.*-)?(?:api-?key|token|secret|password))$/i

/** What is wrong with the URL of a sink is said without showing it: its path may be a secret. */
export function parseUrl(given: unknown, guard: AddressGuard, whose: 'sink' | 'schedule'): URL {
  if (typeof given !== 'string' || given.length > MAX_URL || !URL.canParse(given)) {
    const what = whose === 'sink' ? 'url' : `url is ${quote(given)}; it`
    throw invalid(`${what} must be an http or https URL of at most ${MAX_URL} characters`)
  }
  const url = new URL(given)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw invalid(`url begins with ${url.protocol}//; only https:// and http:// are called`)
  }
  if (url.username !== '' || url.password !== '') {
    throw invalid('url holds a user name or a password: put credentials into the headers of the sink, from env')
  }
  guard.checkHost(url.hostname)
  return url
}

/**
 * Headers of a sink may hold secrets, which come from env and go to its own URL. Those of a schedule may not, for they are
 * stored and shown; nor those of a sink without a URL, for schedules would say who gets them.
 */
export function parseHeaders(given: unknown, whose: 'sink' | 'open sink' | 'schedule'): Record<string, string> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw invalid('headers must be an object')
  const entries = Object.entries(given)
  if (entries.length > MAX_HEADERS) throw invalid(`there are ${entries.length} headers; at most ${MAX_HEADERS}`)
  for (const [name, value] of entries) {
    if (!TOKEN.test(name)) throw invalid(`${quote(name)} is no name of a header`)
    if (RESERVED.test(name)) throw invalid(`the header ${name} is not yours to set`)
    if (whose !== 'sink' && SECRET.test(name)) throw misplaced(name, whose)
    if (typeof value !== 'string' || !VALUE.test(value)) {
      throw invalid(`the header ${name} must be printable ASCII of at most 1024 characters`)
    }
  }
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value as string]))
}

/**
 * The receiver of a message. The sink's own headers may hold credentials: they go to the sink's own origin, and nowhere
 * else that a schedule names.
 */
export function receiverOf(own: Receiver | OpenReceiver, options: Json | undefined, guard: AddressGuard): Receiver {
  if (options === undefined) {
    if ('url' in own) return own
    throw invalid('this sink has no url of its own: the schedule has to say one, as toOptions.url')
  }
  checkOptions(options, ['url', 'headers'], 'a webhook')
  const { url: given, headers: more = {} } = options as { readonly url?: Json; readonly headers?: Json }
  const headers = parseHeaders(more, 'schedule')
  if (given === undefined)
    return 'url' in own
      ? receiver(own.url, { ...own.headers, ...headers }, own.isOwn)
      : receiverOf(own, undefined, guard)
  const url = parseUrl(given, guard, 'schedule')
  const isSameOrigin = !('url' in own) || own.url.origin === url.origin
  return receiver(url, { ...(isSameOrigin ? own.headers : {}), ...headers }, false)
}

/** A sink whose schedules each say where they go. */
export interface OpenReceiver {
  readonly headers: Readonly<Record<string, string>>
}

function misplaced(name: string, whose: 'open sink' | 'schedule') {
  return invalid(
    whose === 'schedule'
      ? `the header ${name} would hold a secret, and schedules are no place for it: set it on the sink`
      : `the header ${name} would go to whichever URL a schedule names: give the sink a url of its own, or leave it out`,
  )
}

function invalid(problem: string) {
  return failure('OPTION_INVALID', problem)
}
