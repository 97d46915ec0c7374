/**
 * Sessions of browsers. One is made from a token and lives no longer than that: the cookie is a credential of its own,
 * so that a page never gets hold of the token, and revoking the token ends its sessions.
 */
import type { RecordStore } from '../../core/store.js'
import { credentialText, matchesHash, newCredential, parseCredential, secretHash } from './credential.js'
import type { TokenInfo, Tokens } from './tokens.js'

const KIND = 'session'
const COOKIE = 'belfry_session'
export const SESSION_MS = 12 * 3_600_000

export class Sessions {
  readonly #records: RecordStore
  readonly #tokens: Tokens

  constructor(records: RecordStore, tokens: Tokens) {
    this.#records = records
    this.#tokens = tokens
  }

  /** What the cookie is to hold. */
  async create(token: string): Promise<string> {
    const credential = newCredential()
    const body = { hash: secretHash(credential.secret), token }
    await this.#records.put({ kind: KIND, id: credential.id, body, ttlMs: SESSION_MS, ifAbsent: true })
    return credentialText(credential)
  }

  /** The token that the session was made from, if both are still good. */
  async check(shown: string): Promise<TokenInfo | undefined> {
    const token = await this.#tokenOf(shown)
    return token === undefined ? undefined : this.#tokens.get(token)
  }

  async end(shown: string): Promise<void> {
    const credential = parseCredential(shown)
    if (credential !== undefined && (await this.#tokenOf(shown)) !== undefined) {
      await this.#records.remove(KIND, credential.id)
    }
  }

  async #tokenOf(shown: string): Promise<string | undefined> {
    const credential = parseCredential(shown)
    if (credential === undefined) return undefined
    const record = await this.#records.get(KIND, credential.id)
    const { hash, token } = (record?.body ?? {}) as { readonly hash?: unknown; readonly token?: unknown }
    if (typeof hash !== 'string' || typeof token !== 'string') return undefined
    return matchesHash(credential.secret, hash) ? token : undefined
  }
}

/** The session that a request shows, if it shows one. Of several, none: somebody has put one there. */
export function shownSession(request: Request): string | undefined {
  const cookies = request.headers.get('cookie')
  if (cookies === null) return undefined
  const values = cookies.split(';').flatMap((cookie) => {
    const at = cookie.indexOf('=')
    return at > 0 && cookie.slice(0, at).trim() === COOKIE ? [cookie.slice(at + 1).trim()] : []
  })
  return values.length === 1 ? values[0] : undefined
}

export function sessionCookie(value: string, path: string, secure: boolean): string {
  return cookieOf(value, path, secure, Math.floor(SESSION_MS / 1_000))
}

/** Takes the cookie away. */
export function endedCookie(path: string, secure: boolean): string {
  return cookieOf('', path, secure, 0)
}

function cookieOf(value: string, path: string, secure: boolean, seconds: number): string {
  const flags = `HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`
  return `${COOKIE}=${value}; Path=${path === '' ? '/' : path}; Max-Age=${seconds}; ${flags}`
}
