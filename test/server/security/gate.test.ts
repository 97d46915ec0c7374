import { afterEach, describe, expect, it } from 'vitest'
import { createBelfry } from '../../../src/belfry.js'
import { silentLogger } from '../../../src/core/logger.js'
import { createServer } from '../../../src/server/index.js'
import { addressKey, RateLimit } from '../../../src/server/security/rate-limit.js'
import { memory } from '../../../src/stores/memory/index.js'
import { manualClock } from '../../../src/testing/index.js'
import { bearer, outcome, type SecuredService, securedService } from './secured-service.js'

let service: SecuredService | undefined

afterEach(() => service?.close())

const HERE = '127.0.0.1'

describe('without a login', () => {
  it.each([
    'localhost',
    'localhost:7420',
    'app.localhost:7420',
    'LOCALHOST',
    '127.0.0.1:7420',
    '127.8.9.10',
    '[::1]:7420',
    'belfry.internal',
    'belfry.internal:9',
    'only.internal:81',
  ])('a request to the host %s from this machine is admin', async (host) => {
    service = await securedService({ open: true, hosts: ['belfry.internal', 'only.internal:81'] })
    const response = await askAs(host)
    expect(await response.json()).toEqual({ name: 'local', role: 'admin' })
  })

  it.each([
    'evil.example',
    'evil.example:7420',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'xlocalhost',
    '127.0.0.1@evil.example',
    '0.0.0.0',
    '[::]',
    '2130706433',
    'only.internal',
    'only.internal:82',
    'localhost, evil.example',
    'localhost:7420:1',
    'localhost/..',
    ' ',
  ])('a request to the host "%s" is refused', async (host) => {
    service = await securedService({ open: true, hosts: ['only.internal:81'] })
    expect(await outcome(await askAs(host))).toBe('421 HOST_REFUSED')
  })

  it('the host in the request line is checked as well as the Host header', async () => {
    service = await securedService({ open: true })
    const response = await service.ask('/v1/session', { headers: { host: 'localhost' }, address: HERE })
    expect(await outcome(response)).toBe('421 HOST_REFUSED')
  })

  it('a request from another machine still needs a token', async () => {
    service = await securedService({ open: true, hosts: ['belfry.test'] })
    expect(await outcome(await service.ask('/v1/session', { address: '192.0.2.1' }))).toBe('401 UNAUTHENTICATED')
    for (const address of [HERE, '::1', '::ffff:127.0.0.1']) {
      expect((await service.ask('/v1/session', { address })).status).toBe(200)
    }
  })

  it('a given token determines the role', async () => {
    service = await securedService({ open: true, hosts: ['belfry.test'] })
    const token = await service.token({ role: 'viewer', name: 'ana' })
    const me = await service.ask('/v1/session', { headers: bearer(token), address: HERE })
    expect(await me.json()).toMatchObject({ role: 'viewer' })
    const forged = await service.ask('/v1/session', { headers: bearer(`${token.slice(0, -2)}AA`), address: HERE })
    expect(await outcome(forged)).toBe('401 UNAUTHENTICATED')
  })

  it.each([
    ['a page of another site', { origin: 'https://evil.example' }, '403 ORIGIN_REFUSED'],
    ['a sandboxed page', { origin: 'null' }, '403 ORIGIN_REFUSED'],
    ['a page of another site, by its fetch metadata', { 'sec-fetch-site': 'cross-site' }, '403 ORIGIN_REFUSED'],
    ['a page of ours', { origin: 'http://belfry.test' }, '404 NOT_FOUND'],
    ['a program', {}, '404 NOT_FOUND'],
  ])('a change sent by %s is checked by its origin', async (_, headers, expected) => {
    service = await securedService({ open: true, hosts: ['belfry.test'] })
    const asked = { method: 'POST', headers, body: {}, address: HERE }
    expect(await outcome(await service.ask('/v1/nothing-here', asked))).toBe(expected)
  })

  it('is the default of a handler without an authoriser', async () => {
    const belfry = createBelfry({ store: memory(), roles: [], logger: silentLogger })
    await belfry.start()
    const { fetch } = createServer(belfry, { hosts: ['belfry.internal'], logger: silentLogger })
    const ask = async (url: string, init?: RequestInit) => outcome(await fetch(new Request(url, init)))
    expect(await ask('http://localhost/v1/session')).toBe('200')
    expect(await ask('http://belfry.internal/v1/session')).toBe('200')
    expect(await ask('http://evil.example/v1/session')).toBe('421 HOST_REFUSED')
    const page = { method: 'POST', headers: { origin: 'https://evil.example' } }
    expect(await ask('http://localhost/v1/schedules', page)).toBe('403 ORIGIN_REFUSED')
    await belfry.stop()
  })
})

async function askAs(host: string): Promise<Response> {
  const { ask } = service as SecuredService
  const names = URL.canParse(`http://${host}/`) && host.trim() !== '' && !/[@/,]/.test(host)
  if (!names) return ask('/v1/session', { headers: { host }, address: HERE })
  // A server builds a request with the same host in the URL and in the header.
  return ask('/v1/session', { headers: { host }, address: HERE, host })
}

describe('probes', () => {
  it('need no token, for any host', async () => {
    service = await securedService({ hosts: ['belfry.example'] })
    for (const path of ['/healthz', '/readyz']) expect((await service.ask(path)).status).toBe(200)
  })
})

describe('every answer', () => {
  it.each(['/healthz', '/v1/session', '/nowhere', '/v1/%zz'])(
    'tells browsers not to render, sniff, frame or cache it: %s',
    async (path) => {
      service = await securedService()
      const { headers } = await service.ask(path)
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; frame-ancestors 'none'/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('x-frame-options')).toBe('DENY')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('access-control-allow-origin')).toBeNull()
      expect(headers.get('strict-transport-security')).toBeNull()
      expect((await service.ask(path, { secure: true })).headers.get('strict-transport-security')).toMatch(/^max-age=/)
    },
  )
})

describe('rate limits', () => {
  it('apply per token, with a Retry-After header', async () => {
    const clock = manualClock(0)
    service = await securedService({ clock, rates: { token: { perSecond: 1, burst: 5 } } })
    const [one, other] = [await service.token({ role: 'viewer' }), await service.token({ role: 'viewer' })]
    for (let at = 0; at < 5; at += 1)
      expect((await service.ask('/v1/session', { headers: bearer(one) })).status).toBe(200)
    const refused = await service.ask('/v1/session', { headers: bearer(one) })
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(await outcome(refused)).toBe('429 RATE_LIMITED')
    expect((await service.ask('/v1/session', { headers: bearer(other) })).status).toBe(200)
    await clock.advance(1_000)
    expect((await service.ask('/v1/session', { headers: bearer(one) })).status).toBe(200)
  })

  it('apply per address', async () => {
    service = await securedService({ clock: manualClock(0), rates: { address: { perSecond: 1, burst: 3 } } })
    const from = async (address: string) => outcome(await (service as SecuredService).ask('/v1/session', { address }))
    for (let at = 0; at < 3; at += 1) expect(await from('192.0.2.1')).toBe('401 UNAUTHENTICATED')
    expect(await from('192.0.2.1')).toBe('429 RATE_LIMITED')
    expect(await from('::ffff:192.0.2.1')).toBe('429 RATE_LIMITED')
    expect(await from('192.0.2.2')).toBe('401 UNAUTHENTICATED')
    const open = async (path: string) => outcome(await (service as SecuredService).ask(path, { address: '192.0.2.1' }))
    for (const path of ['/readyz', '/openapi.json']) expect(await open(path)).toBe('429 RATE_LIMITED')
  })

  it('apply to failed logins, which then cost no store reads; a valid token remains accepted', async () => {
    const clock = manualClock(0)
    service = await securedService({ clock, rates: { guesses: { perSecond: 1, burst: 10 } } })
    const good = await service.token({ role: 'viewer' })
    const ask = async (token: string) =>
      outcome(await (service as SecuredService).ask('/v1/session', { headers: bearer(token) }))
    expect(await ask(good)).toBe('200')
    const forged = (at: number) => good.slice(0, -4) + String(at).padStart(4, '0')
    const guesses = await Promise.all(Array.from({ length: 100 }, (_, at) => ask(forged(at))))
    expect(guesses.filter((each) => each === '401 UNAUTHENTICATED')).toHaveLength(10)
    expect(guesses.filter((each) => each === '429 RATE_LIMITED')).toHaveLength(90)
    expect(await ask(good)).toBe('200')
    // The valid token is accepted after its cache entry has expired, too. Once revoked, it counts as a failed login.
    for (let at = 0; at < 3; at += 1) {
      await clock.advance(2_100)
      await Promise.all(Array.from({ length: 20 }, (_, each) => ask(forged(each))))
      expect(await ask(good)).toBe('200')
    }
    await service.tokens.revoke(good.split('_')[1] ?? '')
    await clock.advance(5_100)
    expect(await ask(good)).toBe('401 UNAUTHENTICATED')
    await Promise.all(Array.from({ length: 20 }, (_, each) => ask(forged(each))))
    expect(await ask(good)).toBe('429 RATE_LIMITED')
  })

  it('accept concurrent first requests with one valid token', async () => {
    service = await securedService({ rates: { guesses: { perSecond: 1, burst: 2 } } })
    const headers = bearer(await service.token({ role: 'viewer' }))
    const { ask } = service
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask('/v1/session', { headers })))
    expect(answers.filter(({ ok }) => ok)).toHaveLength(100)
  })

  it('apply to callers that a host app names', async () => {
    const belfry = createBelfry({ store: memory(), roles: [], logger: silentLogger })
    await belfry.start()
    const { fetch } = createServer(belfry, {
      authorise: async (request) => ({ name: request.headers.get('x-user') ?? '', role: 'viewer' }),
      limits: { requestsPerSecond: 1 },
      logger: silentLogger,
    })
    const ask = async (user: string) =>
      outcome(await fetch(new Request('http://any.example/v1/session', { headers: { 'x-user': user } })))
    const answers = []
    for (let at = 0; at < 6; at += 1) answers.push(await ask('ana'))
    expect(answers).toEqual([...Array(5).fill('200'), '429 RATE_LIMITED'])
    expect(await ask('bob')).toBe('200')
    await belfry.stop()
  })

  it('track a bounded number of addresses', () => {
    const limit = new RateLimit(manualClock(0), { perSecond: 1, burst: 1 })
    for (let at = 0; at < 30_000; at += 1) limit.take(`192.0.${at >> 8}.${at & 255}`)
    expect(limit.size).toBe(10_000)
    expect(limit.take('192.0.117.47')).toBeGreaterThan(0)
  })

  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('count %s as %s', (address, key) => {
    expect(addressKey(address)).toBe(key)
  })
})

describe('a service without login', () => {
  it.each([
    ['a program', {}, '200'],
    ['its own page', { 'sec-fetch-site': 'same-origin' }, '200'],
    ['a typed address', { 'sec-fetch-site': 'none' }, '200'],
    ['a page of another site', { 'sec-fetch-site': 'cross-site' }, '403 ORIGIN_REFUSED'],
    ['a page of another port', { 'sec-fetch-site': 'same-site' }, '403 ORIGIN_REFUSED'],
    ['a page whose browser sends only Origin', { origin: 'https://evil.example' }, '403 ORIGIN_REFUSED'],
  ])('answers reads of %s accordingly', async (_, headers, expected) => {
    service = await securedService({ open: true })
    const asked = { headers, address: HERE, host: 'localhost' }
    expect(await outcome(await service.ask('/v1/schedules', asked))).toBe(expected)
    const stream = await service.ask('/v1/events', asked)
    expect(stream.status).toBe(expected === '200' ? 200 : 403)
    await stream.body?.cancel()
  })
})

describe('an address with too many wrong tokens', () => {
  it('still gets in with a right one that the process has never seen, or with a session', async () => {
    const clock = manualClock(0)
    service = await securedService({ clock, rates: { guesses: { perSecond: 1, burst: 5 } } })
    const { ask } = service
    const forged = `belfry_aaaaaaaaaaaa_${'A'.repeat(43)}`
    const good = await service.token({ role: 'viewer' })
    const guess = async (token: string) => outcome(await ask('/v1/session', { headers: bearer(token) }))
    for (let at = 0; at < 10; at += 1) await guess(forged)
    expect(await guess(forged)).toBe('429 RATE_LIMITED')
    expect(await guess(good)).toBe('200')
    const wrong = `${good.slice(0, -4)}AAAA`
    expect(await guess(wrong)).toBe('429 RATE_LIMITED')
    const session = await ask('/v1/session', { method: 'POST', body: { token: good } })
    expect(session.status).toBe(204)
  })

  it('cannot make the store read for each wrong token', async () => {
    service = await securedService({ clock: manualClock(0), rates: { guesses: { perSecond: 1, burst: 5 } } })
    const { ask, belfry } = service
    const reads = () =>
      belfry.metrics.histograms().find(({ labels }) => labels.operation === 'records.get')?.value.count
    const forged = (at: number) => `belfry_aaaaaaaaaaaa_${String(at).padStart(43, 'A')}`
    for (let at = 0; at < 10; at += 1) await ask('/v1/session', { headers: bearer(forged(at)) })
    const before = reads()
    for (let at = 0; at < 100; at += 1) await ask('/v1/session', { headers: bearer(forged(at)) })
    expect(reads()).toBe(before)
  })
})

describe('logins', () => {
  it('of one token have a rate', async () => {
    service = await securedService({ clock: manualClock(0) })
    const token = await service.token({ role: 'viewer' })
    const { ask } = service
    const logIn = async () => outcome(await ask('/v1/session', { method: 'POST', body: { token } }))
    const outcomes: string[] = []
    for (let at = 0; at < 40; at += 1) outcomes.push(await logIn())
    expect(outcomes.filter((each) => each === '204')).toHaveLength(30)
    expect(outcomes.at(-1)).toBe('429 RATE_LIMITED')
  })
})
