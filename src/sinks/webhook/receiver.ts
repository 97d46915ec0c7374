/** The receiver of a message: its URL and headers, from the sink's options and the schedule's overrides. */

import type { Json } from '../../core/checks/json.js'
import { checkOptions } from '../../core/checks/known-options.js'
import { failure, quote } from '../../core/errors.js'
import type { AddressGuard } from './address-guard.js'
import { type Address, addressOf } from './post.js'

export interface Receiver {
  readonly url: URL
  readonly address: Address
  readonly headers: Readonly<Record<string, string>>
  /** The first headers of a request, as a flat list of names and values. */
  readonly lines: readonly string[]
  /** Whether it is the sink's own receiver: if it is unreachable, the whole sink is. */
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
/** Headers that only the sink or the connection sets. */
const RESERVED =
  /^(?:host|connection|keep-alive|transfer-encoding|content-length|content-type|content-encoding|te|trailer|upgrade|expect|webhook-.*|ce-.*|belfry-.*)$/i
/** Names of headers that hold secrets. */
const SECRET = /^(?:(?:proxy-)?authorization|cookie|(?:.*-)?(?:api-?key|token|secret|password))$/i

/** Errors do not show the URL of a sink: its path may be a secret. */
export function parseUrl(given: unknown, guard: AddressGuard, whose: 'sink' | 'schedule'): URL {
  if (typeof given !== 'string' || given.length > MAX_URL || !URL.canParse(given)) {
    const what = whose === 'sink' ? 'url' : `url is ${quote(given)}; it`
    throw invalid(`${what} must be an http or https URL of at most ${MAX_URL} characters`)
  }
  const url = new URL(given)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw invalid(`url begins with ${url.protocol}//; only https:// and http:// are allowed`)
  }
  if (url.username !== '' || url.password !== '') {
    throw invalid('url holds a user name or a password: put credentials into the headers of the sink, from env')
  }
  guard.checkHost(url.hostname)
  return url
}

/**
 * Headers of a sink may hold secrets: they come from the environment and go to the sink's own URL. Headers of a schedule may
 * not, because they are stored and shown; nor those of a sink without a URL, because schedules choose where they go.
 */
export function parseHeaders(given: unknown, whose: 'sink' | 'open sink' | 'schedule'): Record<string, string> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw invalid('headers must be an object')
  const entries = Object.entries(given)
  if (entries.length > MAX_HEADERS) throw invalid(`there are ${entries.length} headers; at most ${MAX_HEADERS}`)
  for (const [name, value] of entries) {
    if (!TOKEN.test(name)) throw invalid(`${quote(name)} is not a header name`)
    if (RESERVED.test(name)) throw invalid(`the header ${name} is reserved`)
    if (whose !== 'sink' && SECRET.test(name)) throw misplaced(name, whose)
    if (typeof value !== 'string' || !VALUE.test(value)) {
      throw invalid(`the header ${name} must be printable ASCII of at most 1024 characters`)
    }
  }
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value as string]))
}

/**
 * The receiver of a message. The sink's own headers may hold credentials, so they go only to the sink's own origin, not to
 * another that a schedule names.
 */
export function receiverOf(own: Receiver | OpenReceiver, options: Json | undefined, guard: AddressGuard): Receiver {
  if (options === undefined) {
    if ('url' in own) return own
    throw invalid('this sink has no url of its own: the schedule must give one, as toOptions.url')
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

/** The headers of a sink without a URL: each schedule gives its own. */
export interface OpenReceiver {
  readonly headers: Readonly<Record<string, string>>
}

function misplaced(name: string, whose: 'open sink' | 'schedule') {
  return invalid(
    whose === 'schedule'
      ? `the header ${name} would hold a secret, and schedules are stored and shown: set it on the sink`
      : `the header ${name} would go to any URL that a schedule names: give the sink a url of its own, or remove the header`,
  )
}

function invalid(problem: string) {
  return failure('OPTION_INVALID', problem)
}
