/** The receiver of a message: its URL and headers, from the sink's options and the schedule's overrides. */

import type { Json } from '../../core/checks/json.js'
import { failure, quote } from '../../core/errors.js'
import { isBelow, urlPatterns } from '../override-patterns.js'
import { type OverrideOptions, overrideParser, type Rule } from '../overrides.js'
import type { AddressGuard } from './address-guard.js'
import { type Address, addressOf } from './post.js'

export interface Receiver {
  readonly url: URL
  readonly address: Address
  /** The first headers of a request, as a flat list of names and values. */
  readonly lines: readonly string[]
  /** Whether this is the sink's own receiver. If it is unreachable, the whole sink is. */
  readonly isOwn: boolean
  /** Whether the URL is the sink's own or below it, so that it gets what the sink shares with its receiver. */
  readonly isTrusted: boolean
}

export function receiver(
  url: URL,
  headers: Readonly<Record<string, string>>,
  { isOwn, isTrusted }: Pick<Receiver, 'isOwn' | 'isTrusted'>,
): Receiver {
  const all = new Map([['user-agent', 'belfry']])
  for (const [name, value] of Object.entries(headers)) all.set(name.toLowerCase(), value)
  return { url, address: addressOf(url), lines: ['host', url.host, ...[...all].flat()], isOwn, isTrusted }
}

const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/
const VALUE = /^[\t\x20-\x7E]{0,1024}$/
const MAX_HEADERS = 50
const MAX_URL = 2_048
/** Headers that only the sink or the connection sets. */
const RESERVED =
  /^(?:host|connection|keep-alive|transfer-encoding|content-length|content-type|content-encoding|te|trailer|upgrade|expect|webhook-.*|ce-.*|belfry-.*)$/i
/** Names of headers that hold secrets. */
const SECRET = /^(?:(?:proxy-)?authorization|cookie|(?:.*[-_])?(?:api[-_]?key|token|secret|password))$/i
/**
 * Headers that no schedule may set. Some hold secrets, which would be stored and shown with the schedule. Others are
 * set by proxies and cloud services, so receivers trust them.
 */
const NEVER =
  /^(?:(?:.*-)?(?:api-?key|token|secret|password)|forwarded|via|x-forwarded-.*|x-real-.*|x-client-ip|true-client-ip|x-http-method.*|x-method-override|x-original-.*|x-rewrite-.*|x-(?:aws|google)-.*|metadata.*)$/

/** Parses and checks a URL. Errors do not show the URL of a sink, because its path may be a secret. */
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
 * Checks the sink's own headers. Without a URL of its own they may hold no secrets, because schedules choose the receivers.
 */
export function parseHeaders(given: unknown, hasUrl: boolean): Record<string, string> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw invalid('headers must be an object')
  const entries = Object.entries(given)
  if (entries.length > MAX_HEADERS) throw invalid(`there are ${entries.length} headers; at most ${MAX_HEADERS}`)
  for (const [name, value] of entries) {
    const problem = headerProblem(name, value)
    if (problem !== undefined) throw invalid(`the header ${quote(name)} ${problem}`)
    if (!hasUrl && SECRET.test(name)) throw misplaced(name)
  }
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value as string]))
}

function headerProblem(name: string, value: unknown): string | undefined {
  if (!TOKEN.test(name)) return 'is not a header name'
  if (RESERVED.test(name)) return 'is reserved'
  if (typeof value === 'string' && VALUE.test(value)) return undefined
  return 'must be printable ASCII of at most 1024 characters'
}

const OWN = { isOwn: true, isTrusted: true }

/** The receiver of a sink with a URL. */
export interface OwnReceiver {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
}

/** Finds the receiver of a message from the options of its schedule and the key that it has chosen. */
export type FindReceiver = (options: Json | undefined, key: string | undefined) => Receiver

/**
 * A sink with a URL sends its own headers, which may hold credentials, to its own URL and below it, and to no other URL that
 * a schedule names.
 */
export function receiverFinder(
  own: { readonly url?: URL; readonly headers: Readonly<Record<string, string>> },
  overrides: OverrideOptions<'url'> | undefined,
  guard: AddressGuard,
  isOrdered: boolean,
): FindReceiver {
  const where = 'a webhook'
  const rule: Rule = (text) => void parseUrl(text, guard, 'schedule')
  const parse = overrideParser(overrides, {
    where,
    fields: { url: { rule, isHarmless: own.url === undefined, patterns: urlPatterns } },
    headers: { own: own.headers, reserved: NEVER, problem: headerProblem },
    isKeyHarmless: !isOrdered,
  })
  const fixed = own.url === undefined ? undefined : receiver(own.url, own.headers, OWN)
  return (options, key) => {
    const { headers, given, texts } = parse(options, key)
    if (texts.url === undefined) {
      if (fixed === undefined)
        throw invalid('this sink has no url of its own: the schedule must give one, as toOptions.url')
      return headers === own.headers ? fixed : receiver(fixed.url, headers, OWN)
    }
    const url = new URL(texts.url)
    const isTrusted = own.url !== undefined && isWithin(url, own.url)
    return receiver(url, own.url === undefined || isTrusted ? headers : given, { isOwn: false, isTrusted })
  }
}

/** Whether a URL has the sink's own origin and path, or lies below that path. */
function isWithin(url: URL, own: URL): boolean {
  return url.origin === own.origin && isBelow(url.pathname, own.pathname)
}

function misplaced(name: string) {
  return invalid(
    `the header ${name} would go to any URL that a schedule names: give the sink a url of its own, or remove the header`,
  )
}

function invalid(problem: string) {
  return failure('OPTION_INVALID', problem)
}
