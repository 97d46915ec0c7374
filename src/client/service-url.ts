import { ServiceError } from './service-error.js'

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?(?:\/|$)/i

/**
 * The base of all requests, without a slash at its end. `localhost:3333` means `http://localhost:3333`. For any other host the
 * caller has to choose the scheme, because over http the token is readable on the way. A browser also takes a path of its page's own
 * server.
 */
export function serviceUrl(url: string, where = 'createClient'): string {
  if (typeof url !== 'string') throw invalid(`${where}: url is missing: write it as ${EXAMPLE}`)
  const text = url.trim().replace(/\/+$/, '')
  if ((text === '' || text.startsWith('/')) && 'location' in globalThis) return text
  const full = LOOPBACK.test(text) ? `http://${text}` : text
  const parsed = URL.canParse(full) ? new URL(full) : undefined
  if (parsed !== undefined && /^https?:\/\//i.test(full)) return checked(parsed, full, where)
  const hint = /^[a-z0-9.-]+(?::\d+)?(?:\/|$)/i.test(text) ? `http://${text} or https://${text}` : EXAMPLE
  throw invalid(`${where}: ${JSON.stringify(withoutPassword(url))} is not the URL of a service: write it as ${hint}`)
}

const EXAMPLE = 'http://127.0.0.1:7420 or https://belfry.example.com'

function checked({ username, password, search, hash, host }: URL, url: string, where: string): string {
  if (username !== '' || password !== '') {
    throw invalid(`${where}: the URL of ${host} holds a user name or password: give a token instead`)
  }
  if (search === '' && hash === '') return url
  throw invalid(`${where}: ${JSON.stringify(url)} ends in a query or fragment: give the URL without it`)
}

function withoutPassword(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//…@').slice(0, 200)
}

function invalid(detail: string): ServiceError {
  return new ServiceError({ status: 0, code: 'OPTION_INVALID', detail })
}
