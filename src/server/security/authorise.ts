/**
 * Authentication of `belfry serve`: a token in the Authorization header, a browser's session cookie, or, when the service is
 * open, a request from this machine.
 *
 * Cheap checks come first. A request that can be refused by its headers alone never reaches the store, and an address with
 * too many invalid tokens gets 429 before its next token is looked up.
 */
import { type Clock, systemClock } from '../../core/clock.js'
import type { RecordStore } from '../../core/store.js'
import { problem } from '../http/problem.js'
import { type Authorise, type Caller, LOCAL, type RequestInfo } from './caller.js'
import { type Credential, parseCredential } from './credential.js'
import { checkHost, isLoopback } from './host-check.js'
import { KnownCredentials } from './known-credentials.js'
import { checkOrigin } from './origin-check.js'
import { addressKey, mustWait, type Rate, RateLimit } from './rate-limit.js'
import { SESSION_KIND, Sessions, sessionOf } from './sessions.js'
import { TokenCache } from './token-cache.js'
import { TOKEN_KIND, type TokenInfo, Tokens, tokenCredential } from './tokens.js'

export interface AuthoriseOptions {
  /** Whether requests from this machine are admin without a token. If so, the Host header must be loopback or in `hosts`. */
  readonly open?: boolean
  /** Allowed Host header values. Checked when any are given, or when the service is open. */
  readonly hosts?: readonly string[]
  /** Other origins of the same site whose pages may read and make changes with a session cookie. */
  readonly origins?: readonly string[]
  readonly rates?: Partial<Rates>
  readonly clock?: Clock
}

export interface Rates {
  /** Limits requests with one token. */
  readonly token: Rate
  /** Limits requests from one address, with any token. */
  readonly address: Rate
  /** Limits requests from one address with an invalid token or session. */
  readonly guesses: Rate
  /** Limits sessions that one token starts. */
  readonly logins: Rate
}

export const DEFAULT_RATES: Rates = {
  token: { perSecond: 2_000, burst: 10_000 },
  address: { perSecond: 5_000, burst: 20_000 },
  guesses: { perSecond: 2, burst: 50 },
  logins: { perSecond: 1, burst: 30 },
}

/** An authoriser whose gate the session routes use. */
export interface TokenAuthorise extends Authorise {
  readonly gate: Gate
}

/** The gate of an authoriser; undefined for one that a host app wrote. */
export function gateOf(authorise: Authorise | undefined): Gate | undefined {
  if (authorise === undefined || !('gate' in authorise)) return undefined
  return authorise.gate instanceof Gate ? authorise.gate : undefined
}

export function tokenAuthorise(records: RecordStore, options: AuthoriseOptions = {}): TokenAuthorise {
  const gate = new Gate(records, options)
  return Object.assign((request: Request, info: RequestInfo) => gate.authenticate(request, info), { gate })
}

export class Gate {
  readonly tokens: Tokens
  readonly sessions: Sessions
  readonly #open: boolean
  readonly #hosts: readonly string[]
  readonly origins: readonly string[]
  readonly #byToken: TokenCache<TokenInfo>
  readonly #bySession: TokenCache<TokenInfo>
  readonly #knownTokens: KnownCredentials
  readonly #knownSessions: KnownCredentials
  readonly #limits: Readonly<Record<keyof Rates, RateLimit>>

  constructor(records: RecordStore, options: AuthoriseOptions) {
    const { open = false, hosts = [], origins = [], clock = systemClock } = options
    this.#open = open
    this.#hosts = hosts
    this.origins = origins
    this.tokens = new Tokens(records)
    this.sessions = new Sessions(records, this.tokens)
    this.#byToken = new TokenCache(clock, (text) => this.tokens.check(text))
    this.#bySession = new TokenCache(clock, (cookie) => this.sessions.check(cookie))
    this.#knownTokens = new KnownCredentials(clock, records, TOKEN_KIND)
    this.#knownSessions = new KnownCredentials(clock, records, SESSION_KIND)
    const rates = { ...DEFAULT_RATES, ...options.rates }
    this.#limits = {
      token: new RateLimit(clock, rates.token),
      address: new RateLimit(clock, rates.address),
      guesses: new RateLimit(clock, rates.guesses),
      logins: new RateLimit(clock, rates.logins),
    }
  }

  /** Whether requests from this machine need no login. */
  get isOpen(): boolean {
    return this.#open
  }

  async authenticate(request: Request, info: RequestInfo): Promise<Caller> {
    this.#checkHost(request)
    const isLocal = this.#isLocal(info)
    if (!isLocal) this.#count(info)
    const authorization = request.headers.get('authorization')
    if (authorization !== null) return this.#byTokenOf(authorization, this.#addressOf(info))
    const session = sessionOf(request)
    if (session !== undefined) return this.#bySessionOf(session, request, this.#addressOf(info))
    if (isLocal) {
      checkOrigin(request, { origins: this.origins, required: false })
      return LOCAL
    }
    throw unauthenticated('the request has no token and no session')
  }

  /** Counts a request to a route without authentication against the rate limit of its address. */
  countOpen(info: RequestInfo): void {
    if (!this.#isLocal(info)) this.#count(info)
  }

  #count(info: RequestInfo): void {
    mustWait(this.#limits.address.take(this.#addressOf(info)), 'requests from this address')
  }

  /** Creates a session from a token; resolves to the value of its cookie. */
  async logIn(request: Request, info: RequestInfo, text: string): Promise<string> {
    this.checkPage(request)
    const address = this.#addressOf(info)
    const token = await this.#validToken(text, address)
    mustWait(this.#limits.logins.take(token.id), 'logins with this token')
    return this.sessions.create(token.id)
  }

  /** Refuses requests from pages of other sites. */
  checkPage(request: Request): void {
    this.#checkHost(request)
    checkOrigin(request, { origins: this.origins, required: false })
  }

  async logOut(cookie: string): Promise<void> {
    this.#bySession.forget(cookie)
    await this.sessions.end(cookie)
    // Forgets the session again, because a request may have cached it during the removal.
    this.#bySession.forget(cookie)
  }

  #checkHost(request: Request): void {
    if (this.#open || this.#hosts.length > 0) checkHost(request, this.#hosts)
  }

  #addressOf({ remoteAddress }: RequestInfo): string {
    return remoteAddress === undefined ? 'unknown' : addressKey(remoteAddress)
  }

  /** Whether the request comes from this machine and the service is open. */
  #isLocal({ remoteAddress }: RequestInfo): boolean {
    return this.#open && (remoteAddress === undefined || isLoopback(remoteAddress))
  }

  async #byTokenOf(authorization: string, address: string): Promise<Caller> {
    const [, text = ''] = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization) ?? []
    return this.#callerOf(await this.#validToken(text, address))
  }

  async #bySessionOf(cookie: string, request: Request, address: string): Promise<Caller> {
    checkOrigin(request, { origins: this.origins, required: true })
    const credential = parseCredential(cookie)
    return this.#callerOf(await this.#valid(this.#bySession, this.#knownSessions, cookie, credential, address))
  }

  #validToken(text: string, address: string): Promise<TokenInfo> {
    return this.#valid(this.#byToken, this.#knownTokens, text, tokenCredential(text), address)
  }

  /** Refuses malformed text without a lookup in the store. */
  async #valid(
    cache: TokenCache<TokenInfo>,
    known: KnownCredentials,
    text: string,
    credential: Credential | undefined,
    address: string,
  ): Promise<TokenInfo> {
    // Guesses must not lock out valid tokens of the same address: neither one that was valid before, nor any other.
    const isGuess = !cache.wasValid(text)
    const waitMs = isGuess ? this.#limits.guesses.take(address) : 0
    const isKnown = waitMs > 0 && credential !== undefined && (await known.has(credential))
    if (!isKnown) mustWait(waitMs, 'invalid tokens from this address')
    const token = credential === undefined ? undefined : await cache.check(text)
    if (token !== undefined) {
      if (isGuess && waitMs === 0) this.#limits.guesses.giveBack(address)
      return token
    }
    throw unauthenticated('the token or session is unknown, expired or revoked')
  }

  #callerOf({ id, name, createdAt: _, expiresAt: __, ...rights }: TokenInfo): Caller {
    mustWait(this.#limits.token.take(id), 'requests with this token')
    // Token names need not be unique, so the caller's name carries the id.
    return { name: name === id ? id : `${name} (${id})`, ...rights }
  }
}

function unauthenticated(detail: string) {
  return problem(401, 'UNAUTHENTICATED', detail, {
    hint: 'send Authorization: Bearer <token>; belfry token create makes one',
    headers: { 'www-authenticate': 'Bearer realm="belfry"' },
  })
}
