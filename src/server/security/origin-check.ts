/**
 * Origin check against cross-site request forgery. A page of another site can make the browser send requests that carry the
 * session cookie, or that come from this machine and so need no token. Therefore a request that makes changes must come from
 * our own origin or a configured one. Programs send no `Origin`; only a request with a session cookie must have one.
 *
 * A page of another site cannot read the answers to its requests, but without login it could keep a service busy with
 * expensive ones, and hold event streams open. So its reads are refused, too. Browsers say in `Sec-Fetch-Site`, and for some
 * requests in `Origin`, where a request comes from.
 */
import { quote } from '../../core/errors.js'
import { problem } from '../http/problem.js'

const READS = new Set(['GET', 'HEAD', 'OPTIONS'])

export interface OriginRule {
  /** Other origins whose pages may read and make changes. */
  readonly origins: readonly string[]
  /** Whether a request without an `Origin` is refused. */
  readonly required: boolean
}

export function checkOrigin(request: Request, { origins, required }: OriginRule): void {
  if (READS.has(request.method)) {
    checkReader(request, origins)
    return
  }
  const origin = request.headers.get('origin')
  if (origin === null) {
    const site = request.headers.get('sec-fetch-site')
    if (!required && (site === null || site === 'same-origin' || site === 'none')) return
    throw problem(403, 'ORIGIN_REFUSED', 'a request that makes changes with a session must have an Origin header', {
      hint: 'programs use a token: Authorization: Bearer …',
    })
  }
  if (isOwn(origin, request) || origins.includes(origin)) return
  throw problem(403, 'ORIGIN_REFUSED', `pages of ${quote(origin)} may not make changes here`, {
    hint: 'to allow them, add the origin to the setting "origins"',
  })
}

/** Refuses reads by pages of other origins. A link that a person follows counts as one: its site is `cross-site`, too. */
function checkReader(request: Request, origins: readonly string[]): void {
  const origin = request.headers.get('origin')
  const site = request.headers.get('sec-fetch-site')
  const isForeign = site !== null && site !== 'same-origin' && site !== 'none'
  const isAllowed = origin === null ? !isForeign : isOwn(origin, request) || origins.includes(origin)
  if (isAllowed) return
  throw problem(403, 'ORIGIN_REFUSED', 'pages of other sites may not read here without a token', {
    hint: 'to allow them, add the origin to the setting "origins"',
  })
}

/** Compares hosts, not schemes: behind a proxy that terminates TLS the scheme differs. */
function isOwn(origin: string, request: Request): boolean {
  const host = request.headers.get('host') ?? new URL(request.url).host
  return URL.canParse(origin) && /^https?:\/\//.test(origin) && new URL(origin).host === withoutDefaultPort(host)
}

function withoutDefaultPort(host: string): string {
  const url = `http://${host}`
  return URL.canParse(url) ? new URL(url).host : ''
}
