/** Where a message goes, and with which headers of whose: what the sink says, and what a schedule says over it. */
import { failure, quote } from '../../core/errors.js'
import type { Json } from '../../core/json.js'
import { checkOptions } from '../../core/known-options.js'
import type { AddressGuard } from './address-guard.js'

export interface Receiver {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** The sink's own: when it cannot be reached, nobody's messages get through. */
  readonly isOwn: boolean
}

const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/
const VALUE = /^[\t\x20-\x7E]{0,1024}$/
const MAX_HEADERS = 50
const MAX_URL = 2_048
/** Ours to set, or the connection's. */
const RESERVED =
  /^(?:host|connection|keep-alive|transfer-encoding|content-length|content-type|te|trailer|upgrade|expect|webhook-.*|ce-.*|belfry-.*)$/i
/** What a schedule says is stored, and shown to whoever may look at it. */
const SECRET = /^(?:authorization|proxy-authorization|cookie|x-api-key|api-key)$/i

export function parseUrl(given: unknown, guard: AddressGuard): URL {
  if (typeof given !== 'string' || given.length > MAX_URL || !URL.canParse(given)) {
    throw invalid(`url is ${quote(given)}; it must be an http or https URL of at most ${MAX_URL} characters`)
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

/** Headers of the sink may be secrets, which come from env; those of a schedule may not. */
export function parseHeaders(given: unknown, whose: 'sink' | 'schedule'): Record<string, string> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw invalid('headers must be an object')
  const entries = Object.entries(given)
  if (entries.length > MAX_HEADERS) throw invalid(`there are ${entries.length} headers; at most ${MAX_HEADERS}`)
  for (const [name, value] of entries) {
    if (!TOKEN.test(name)) throw invalid(`${quote(name)} is no name of a header`)
    if (RESERVED.test(name)) throw invalid(`the header ${name} is not yours to set`)
    if (whose === 'schedule' && SECRET.test(name)) {
      throw invalid(`the header ${name} would hold a secret, and schedules are no place for it: set it on the sink`)
    }
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
    return 'url' in own ? { ...own, headers: { ...own.headers, ...headers } } : receiverOf(own, undefined, guard)
  const url = parseUrl(given, guard)
  const isSameOrigin = !('url' in own) || own.url.origin === url.origin
  return { url, headers: { ...(isSameOrigin ? own.headers : {}), ...headers }, isOwn: false }
}

/** A sink whose schedules each say where they go. */
export interface OpenReceiver {
  readonly headers: Readonly<Record<string, string>>
}

function invalid(problem: string) {
  return failure('OPTION_INVALID', problem)
}
