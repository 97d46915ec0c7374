/**
 * Which page a browser asks for. Whoever is let in by a cookie, or by being on this machine, is let in by what the browser
 * adds of its own accord: other sites' pages can make it do so. What changes something must therefore come from a page of
 * ours. Programs send no `Origin`, and a cookie is for browsers.
 */
import { quote } from '../../core/errors.js'
import { problem } from '../http/problem.js'

const READS = new Set(['GET', 'HEAD', 'OPTIONS'])

export interface OriginRule {
  /** Other origins whose pages may change things. */
  readonly origins: readonly string[]
  /** Whether it takes an `Origin` at all. */
  readonly required: boolean
}

export function checkOrigin(request: Request, { origins, required }: OriginRule): void {
  if (READS.has(request.method)) return
  const origin = request.headers.get('origin')
  if (origin === null) {
    const site = request.headers.get('sec-fetch-site')
    if (!required && (site === null || site === 'same-origin' || site === 'none')) return
    throw problem(403, 'ORIGIN_REFUSED', 'a request that changes something with a session must name its Origin', {
      hint: 'programs use a token: Authorization: Bearer …',
    })
  }
  if (isOwn(origin, request) || origins.includes(origin)) return
  throw problem(403, 'ORIGIN_REFUSED', `pages of ${quote(origin)} may not change anything here`, {
    hint: 'if they may, add the origin to the setting "origins"',
  })
}

/** Behind a proxy that speaks TLS for us the scheme differs; the host is what tells sites apart. */
function isOwn(origin: string, request: Request): boolean {
  const host = request.headers.get('host') ?? new URL(request.url).host
  return URL.canParse(origin) && /^https?:\/\//.test(origin) && new URL(origin).host === withoutDefaultPort(host)
}

function withoutDefaultPort(host: string): string {
  const url = `http://${host}`
  return URL.canParse(url) ? new URL(url).host : ''
}
