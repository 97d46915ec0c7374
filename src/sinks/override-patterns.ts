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

export type Matches = (text: string) => boolean

export function textPatterns(patterns: readonly string[]): Matches {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const globs = patterns.filter((pattern) => pattern.includes('*')).map((pattern) => pattern.split('*'))
  return (text) => exact.has(text) || globs.some((parts) => matchesGlob(parts, text))
}

/** Finds each part at its first occurrence, without backtracking, so the time is linear. */
function matchesGlob([first = '', ...rest]: readonly string[], text: string): boolean {
  const last = rest.at(-1) ?? ''
  const end = text.length - last.length
  if (!text.startsWith(first) || !text.endsWith(last) || end < first.length) return false
  let from = first.length
  for (const part of rest.slice(0, -1)) {
    const at = text.indexOf(part, from)
    if (at < 0 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}

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
