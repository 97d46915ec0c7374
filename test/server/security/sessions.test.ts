import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TRUST_MS } from '../../../src/server/security/token-cache.js'
import { type ManualClock, manualClock } from '../../../src/testing/index.js'
import { bearer, outcome, type SecuredService, securedService } from './secured-service.js'

const OWN = 'http://belfry.test'

let clock: ManualClock
let service: SecuredService

beforeEach(async () => {
  clock = manualClock(Date.UTC(2026, 0, 1))
  service = await securedService({ clock, origins: ['https://dashboard.example'] })
})

afterEach(() => service.close())

async function logIn(secure = false): Promise<{ cookie: string; id: string; set: string }> {
  const { token, info } = await service.tokens.create({ role: 'operator', name: 'ana' })
  const headers = { origin: OWN }
  const response = await service.ask('/v1/session', { method: 'POST', headers, body: { token }, secure })
  expect(response.status).toBe(204)
  const set = response.headers.get('set-cookie') ?? ''
  return { cookie: set.split(';')[0] ?? '', id: info.id, set }
}

describe('a session', () => {
  it('has an HttpOnly, SameSite cookie', async () => {
    const { set, cookie } = await logIn()
    expect(set).toMatch(/^belfry_session=[a-z2-7]{12}_[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
    const me = await service.ask('/v1/session', { headers: { cookie } })
    expect(await me.json()).toMatchObject({ role: 'operator', name: expect.stringMatching(/^ana /) })
    expect((await logIn(true)).set).toMatch(/; Secure$/)
  })

  it('is stored only as a hash', async () => {
    const { cookie } = await logIn()
    const { items } = await service.belfry.records.list({ kind: 'session', limit: 10 })
    expect(items).toHaveLength(1)
    expect(JSON.stringify(items)).not.toContain(cookie.slice(-43))
  })

  it('ends at once with a logout', async () => {
    const { cookie } = await logIn()
    expect((await service.ask('/v1/session', { headers: { cookie } })).status).toBe(200)
    const out = await service.ask('/v1/session', { method: 'DELETE', headers: { cookie, origin: OWN } })
    expect(out.headers.get('set-cookie')).toMatch(/^belfry_session=; Path=\/; Max-Age=0/)
    expect(await outcome(await service.ask('/v1/session', { headers: { cookie } }))).toBe('401 UNAUTHENTICATED')
  })

  it('ends with its token', async () => {
    const { cookie, id } = await logIn()
    await service.tokens.revoke(id)
    await clock.advance(TRUST_MS)
    expect(await outcome(await service.ask('/v1/session', { headers: { cookie } }))).toBe('401 UNAUTHENTICATED')
  })

  it('is not created from an invalid token', async () => {
    const body = { token: `belfry_aaaaaaaaaaaa_${'A'.repeat(43)}` }
    expect(await outcome(await service.ask('/v1/session', { method: 'POST', body }))).toBe('401 UNAUTHENTICATED')
    expect(await outcome(await service.ask('/v1/session', { method: 'POST', body: { token: 7 } }))).toBe(
      '422 BODY_INVALID',
    )
    expect((await service.belfry.records.list({ kind: 'session', limit: 10 })).items).toEqual([])
  })

  it('cannot be created or ended by a page of another site', async () => {
    const { cookie } = await logIn()
    const token = await service.token({ role: 'admin' })
    const headers = { cookie, origin: 'https://evil.example' }
    for (const asked of [
      { method: 'POST', headers, body: { token } },
      { method: 'DELETE', headers },
    ]) {
      expect(await outcome(await service.ask('/v1/session', asked))).toBe('403 ORIGIN_REFUSED')
    }
    expect((await service.ask('/v1/session', { headers: { cookie } })).status).toBe(200)
  })

  it.each([
    ['none', {}, '403 ORIGIN_REFUSED'],
    ['another site', { origin: 'https://evil.example' }, '403 ORIGIN_REFUSED'],
    ['another port', { origin: 'http://belfry.test:81' }, '403 ORIGIN_REFUSED'],
    ['a name that begins alike', { origin: 'http://belfry.test.evil.example' }, '403 ORIGIN_REFUSED'],
    ['our name as a user', { origin: 'http://belfry.test@evil.example' }, '403 ORIGIN_REFUSED'],
    ['a sandbox', { origin: 'null' }, '403 ORIGIN_REFUSED'],
    ['a file', { origin: 'file://belfry.test' }, '403 ORIGIN_REFUSED'],
    ['nonsense', { origin: '//belfry.test' }, '403 ORIGIN_REFUSED'],
    ['our own', { origin: OWN }, '404 NOT_FOUND'],
    ['our own behind TLS', { origin: 'https://belfry.test' }, '404 NOT_FOUND'],
    ['one that was configured', { origin: 'https://dashboard.example' }, '404 NOT_FOUND'],
  ])('accepts changes only from the service’s own pages: Origin of %s', async (_, headers, expected) => {
    const { cookie } = await logIn()
    const asked = { method: 'POST', headers: { cookie, ...headers }, body: {} }
    expect(await outcome(await service.ask('/v1/nothing-here', asked))).toBe(expected)
  })

  it('is refused when its cookie appears twice: another party may have added one', async () => {
    const { cookie } = await logIn()
    const headers = { cookie: `${cookie}; ${cookie}` }
    expect(await outcome(await service.ask('/v1/session', { headers }))).toBe('401 UNAUTHENTICATED')
  })
})

describe('a stream of events', () => {
  it('is closed when the client does not read', async () => {
    const headers = bearer(await service.token({ role: 'viewer' }))
    const looks = () => service.belfry.metrics.histograms().find(({ labels }) => labels.operation === 'runs.list')
    const response = await service.ask('/v1/events', { method: 'HEAD', headers })
    expect(response.status).toBe(200)
    const before = looks()?.value.count
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(looks()?.value.count).toBe(before)
  })

  it('ends when its token is revoked', async () => {
    const own = await securedService()
    const { token, info } = await own.tokens.create({ role: 'viewer' })
    const response = await own.ask('/v1/events', { headers: bearer(token) })
    expect(response.status).toBe(200)
    const whole = response.text()
    await own.tokens.revoke(info.id)
    expect(await whole).toMatch(/^event: ready$/m)
    await own.close()
  })
})
