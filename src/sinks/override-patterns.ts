/**
 * The patterns by which a sink's owner allows schedules to set values.
 *
 *     orders.new                  exactly this text
 *     orders.*                    `*` stands for any text, also for none, and for dots and slashes too
 *     https://shop.example        URLs of this origin
 *     https://shop.example/in     of these, `/in` and what is below it
 *     https://*.shop.example      hosts below shop.example, on the default port
 *     https://*                   any host
 */
import { failure, quote } from '../core/errors.js'
import { type Matches, textPatterns } from '../core/names/text-patterns.js'

/** Matches header names, without regard to case. */
export function headerPatterns(patterns: readonly string[]): Matches {
  const matches = textPatterns(patterns.map((pattern) => pattern.toLowerCase()))
  return (name) => matches(name.toLowerCase())
}

/** Matches URLs by their origin and the beginning of their path. The given URLs must be parsable. */
export function urlPatterns(patterns: readonly string[]): Matches {
  const all = patterns.map(urlPattern)
  return (text) => {
    const url = new URL(text)
    return all.some((matches) => matches(url))
  }
}

function urlPattern(pattern: string): (url: URL) => boolean {
  const wanted = URL.canParse(pattern) ? new URL(pattern) : undefined
  if (wanted === undefined || !isPlain(wanted) || !/^(?:\*|(?:\*\.)?[^*]+)$/.test(wanted.hostname)) {
    const forms = 'https://host, https://host/path, https://*.host or https://*'
    throw failure('OPTION_INVALID', `overrides: url allows ${quote(pattern)}; write ${forms}`)
  }
  const { protocol, port, pathname } = wanted
  const isHost = hostMatcher(wanted.hostname)
  return (url) =>
    url.protocol === protocol && url.port === port && isHost(url.hostname) && isBelow(url.pathname, pathname)
}

function isPlain({ protocol, username, password, search, hash, pathname }: URL): boolean {
  const isHttp = protocol === 'https:' || protocol === 'http:'
  return isHttp && username === '' && password === '' && search === '' && hash === '' && !pathname.includes('*')
}

function hostMatcher(host: string): Matches {
  if (host === '*') return () => true
  return host.startsWith('*.') ? (other) => other.endsWith(host.slice(1)) : (other) => other === host
}

/**
 * Whether a path lies below a prefix. `URL` has resolved `..` in all spellings that it knows. Receivers know more
 * spellings (`%252e`, `..;`), so the rest of the path may hold no `%` and no `;`.
 */
export function isBelow(path: string, prefix: string): boolean {
  if (prefix === '/' || path === prefix) return true
  const folder = prefix.endsWith('/') ? prefix : `${prefix}/`
  return path.startsWith(folder) && !/[%;]/.test(path.slice(folder.length))
}
