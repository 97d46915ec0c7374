/**
 * Decides who asks, for `belfry serve`: by a token in the Authorization header, by the session of a browser, or, where
 * nobody has to log in, by being on this machine.
 *
 * The order is that of cost: what can be refused by looking at the request is refused before the store is asked, and an
 * address that has guessed too often is not asked for at all.
 */
import { type Clock, systemClock } from '../../core/clock.js'
import type { RecordStore } from '../../core/store.js'
import { problem } from '../http/problem.js'
import type { Authorise, Caller, RequestInfo } from './caller.js'
import { checkHost, isLoopback } from './host-check.js'
import { checkOrigin } from './origin-check.js'
import { addressKey, mustWait, type Rate, RateLimit } from './rate-limit.js'
import { Sessions, shownSession } from './sessions.js'
import { BriefTrust } from './token-cache.js'
import { type TokenInfo, Tokens, tokenCredential } from './tokens.js'

export interface AuthoriseOptions {
  /** Whether everybody on this machine is admin without a login. Then only loopback and configured hosts are answered. */
  readonly open?: boolean
  /** Names that this service is asked by. Given any, or open, requests to others are refused. */
  readonly hosts?: readonly string[]
  /** Sites whose pages may change things with a session, besides our own. */
  readonly origins?: readonly string[]
  readonly rates?: Partial<Rates>
  readonly clock?: Clock
}

export interface Rates {
  /** Requests with one token. */
  readonly token: Rate
  /** Requests from one address, whoever asks. */
  readonly address: Rate
  /** Requests from one address with a token or session that is not good. */
  readonly guesses: Rate
}

export const DEFAULT_RATES: Rates = {
  token: { perSecond: 2_000, burst: 10_000 },
  address: { perSecond: 5_000, burst: 20_000 },
  guesses: { perSecond: 2, burst: 50 },
}

const LOCAL: Caller = { name: 'local', role: 'admin' }

/** An authoriser, with what the session routes need of it. */
export interface TokenAuthorise extends Authorise {
  readonly gate: Gate
}

/** The gate of an authoriser that has one. */
export function gateOf(authorise: Authorise | undefined): Gate | undefined {
  if (authorise === undefined || !('gate' in authorise)) return undefined
  return authorise.gate instanceof Gate ? authorise.gate : undefined
}

export function tokenAuthorise(records: RecordStore, options: AuthoriseOptions = {}): TokenAuthorise {
  const gate = new Gate(records, options)
  return Object.assign((request: Request, info: RequestInfo) => gate.pass(request, info), { gate })
}

export class Gate {
  readonly tokens: Tokens
  readonly sessions: Sessions
  readonly #open: boolean
  readonly #hosts: readonly string[]
  readonly #origins: readonly string[]
  readonly #byToken: BriefTrust<TokenInfo>
  readonly #bySession: BriefTrust<TokenInfo>
  readonly #limits: Readonly<Record<keyof Rates, RateLimit>>

  constructor(records: RecordStore, options: AuthoriseOptions) {
    const { open = false, hosts = [], origins = [], clock = systemClock } = options
    this.#open = open
    this.#hosts = hosts
    this.#origins = origins
    this.tokens = new Tokens(records)
    this.sessions = new Sessions(records, this.tokens)
    this.#byToken = new BriefTrust(clock, (shown) => this.tokens.check(shown))
    this.#bySession = new BriefTrust(clock, (shown) => this.sessions.check(shown))
    const rates = { ...DEFAULT_RATES, ...options.rates }
    this.#limits = {
      token: new RateLimit(clock, rates.token),
      address: new RateLimit(clock, rates.address),
      guesses: new RateLimit(clock, rates.guesses),
    }
  }

  pass(request: Request, info: RequestInfo): Caller | Promise<Caller> {
    this.#checkHost(request)
    const isHere = this.#isHere(info)
    if (!isHere) this.#count(info)
    const authorization = request.headers.get('authorization')
    if (authorization !== null) return this.#byTokenOf(authorization, this.#addressOf(info))
    const session = shownSession(request)
    if (session !== undefined) return this.#bySessionOf(session, request, this.#addressOf(info))
    if (isHere) {
      checkOrigin(request, { origins: this.#origins, required: false })
      return LOCAL
    }
    throw unauthenticated('there is no token and no session')
  }

  /** Counts a request, whether or not it takes a login. */
  arrive(info: RequestInfo): void {
    if (!this.#isHere(info)) this.#count(info)
  }

  #count(info: RequestInfo): void {
    mustWait(this.#limits.address.take(this.#addressOf(info)), 'requests from this address')
  }

  /** Makes a session from the token that a request shows: what its cookie is to hold. */
  async logIn(request: Request, info: RequestInfo, shown: string): Promise<string> {
    this.checkPage(request)
    const address = this.#addressOf(info)
    const token = await this.#known(this.#byToken, shown, tokenCredential(shown) !== undefined, address)
    return this.sessions.create(token.id)
  }

  /** Refuses what comes from a page of another site. */
  checkPage(request: Request): void {
    this.#checkHost(request)
    checkOrigin(request, { origins: this.#origins, required: false })
  }

  async logOut(shown: string): Promise<void> {
    this.#bySession.forget(shown)
    await this.sessions.end(shown)
    this.#bySession.forget(shown)
  }

  #checkHost(request: Request): void {
    if (this.#open || this.#hosts.length > 0) checkHost(request, this.#hosts)
  }

  #addressOf({ remoteAddress }: RequestInfo): string {
    return remoteAddress === undefined ? 'unknown' : addressKey(remoteAddress)
  }

  /** On this machine, where nobody has to log in. */
  #isHere({ remoteAddress }: RequestInfo): boolean {
    return this.#open && (remoteAddress === undefined || isLoopback(remoteAddress))
  }

  async #byTokenOf(authorization: string, address: string): Promise<Caller> {
    const [, shown = ''] = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization) ?? []
    const token = await this.#known(this.#byToken, shown, tokenCredential(shown) !== undefined, address)
    return this.#callerOf(token)
  }

  async #bySessionOf(shown: string, request: Request, address: string): Promise<Caller> {
    checkOrigin(request, { origins: this.#origins, required: true })
    return this.#callerOf(await this.#known(this.#bySession, shown, true, address))
  }

  async #known(trust: BriefTrust<TokenInfo>, shown: string, likely: boolean, address: string): Promise<TokenInfo> {
    // Who was let in before is not held up by others who guess from the same address.
    const isGuess = !trust.wasGood(shown)
    if (isGuess) mustWait(this.#limits.guesses.take(address), 'tokens that are not good from this address')
    const token = likely ? await trust.check(shown) : undefined
    if (token !== undefined) {
      if (isGuess) this.#limits.guesses.giveBack(address)
      return token
    }
    throw unauthenticated('the token or session is unknown, expired or revoked')
  }

  #callerOf({ id, name, role, prefix }: TokenInfo): Caller {
    mustWait(this.#limits.token.take(id), 'requests with this token')
    // Names need not be unique; who is meant has to be.
    return { name: name === id ? id : `${name} (${id})`, role, ...(prefix === undefined ? {} : { prefix }) }
  }
}

function unauthenticated(detail: string) {
  return problem(401, 'UNAUTHENTICATED', detail, {
    hint: 'send Authorization: Bearer <token>; belfry token create makes one',
    headers: { 'www-authenticate': 'Bearer realm="belfry"' },
  })
}
