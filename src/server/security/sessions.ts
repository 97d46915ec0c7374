/**
 * Browser sessions. A session is created from a token, and is valid only while the token is. The cookie is a credential of
 * its own, so that pages never see the token.
 */
import type { RecordStore } from '../../core/store.js'
import { credentialText, matchesHash, newCredential, parseCredential, secretHash } from './credential.js'
import type { TokenInfo, Tokens } from './tokens.js'

export const SESSION_KIND = 'session'
export const SESSION_COOKIE = 'belfry_session'
export const SESSION_MS = 12 * 3_600_000

export class Sessions {
  readonly #records: RecordStore
  readonly #tokens: Tokens

  constructor(records: RecordStore, tokens: Tokens) {
    this.#records = records
    this.#tokens = tokens
  }

  /** Resolves to the value of the cookie. */
  async create(token: string): Promise<string> {
    const credential = newCredential()
    const body = { hash: secretHash(credential.secret), token }
    await this.#records.put({ kind: SESSION_KIND, id: credential.id, body, ttlMs: SESSION_MS, ifAbsent: true })
    return credentialText(credential)
  }

  /** The token that the session was created from, if both are still valid. */
  async check(cookie: string): Promise<TokenInfo | undefined> {
    const token = await this.#tokenOf(cookie)
    return token === undefined ? undefined : this.#tokens.get(token)
  }

  async end(cookie: string): Promise<void> {
    const credential = parseCredential(cookie)
    if (credential !== undefined && (await this.#tokenOf(cookie)) !== undefined) {
      await this.#records.remove(SESSION_KIND, credential.id)
    }
  }

  async #tokenOf(cookie: string): Promise<string | undefined> {
    const credential = parseCredential(cookie)
    if (credential === undefined) return undefined
    const record = await this.#records.get(SESSION_KIND, credential.id)
    const { hash, token } = (record?.body ?? {}) as { readonly hash?: unknown; readonly token?: unknown }
    if (typeof hash !== 'string' || typeof token !== 'string') return undefined
    return matchesHash(credential.secret, hash) ? token : undefined
  }
}

/** The request's session cookie. Several cookies of that name are all ignored: another site may have planted one. */
export function sessionOf(request: Request): string | undefined {
  const cookies = request.headers.get('cookie')
  if (cookies === null) return undefined
  const values = cookies.split(';').flatMap((cookie) => {
    const at = cookie.indexOf('=')
    return at > 0 && cookie.slice(0, at).trim() === SESSION_COOKIE ? [cookie.slice(at + 1).trim()] : []
  })
  return values.length === 1 ? values[0] : undefined
}

export function sessionCookie(value: string, path: string, secure: boolean): string {
  return cookieOf(value, path, secure, Math.floor(SESSION_MS / 1_000))
}

/** A cookie that makes the browser delete the session. */
export function endedCookie(path: string, secure: boolean): string {
  return cookieOf('', path, secure, 0)
}

function cookieOf(value: string, path: string, secure: boolean, seconds: number): string {
  const flags = `HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`
  return `${SESSION_COOKIE}=${value}; Path=${path === '' ? '/' : path}; Max-Age=${seconds}; ${flags}`
}
