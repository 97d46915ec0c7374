import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TRUST_MS } from '../../../src/server/security/token-cache.js'
import { type ManualClock, manualClock } from '../../../src/testing/index.js'
import { bearer, outcome, type SecuredService, securedService } from './secured-service.js'

let clock: ManualClock
let service: SecuredService

beforeEach(async () => {
  clock = manualClock(Date.UTC(2026, 0, 1))
  service = await securedService({ clock })
})

afterEach(() => service.close())

const who = async (token: string) => (await service.ask('/v1/session', { headers: bearer(token) })).json()

describe('a token', () => {
  it('identifies its caller, with role and prefix', async () => {
    const { token, info } = await service.tokens.create({ role: 'operator', name: 'billing', prefix: 'billing/' })
    expect(await who(token)).toEqual({ name: `billing (${info.id})`, role: 'operator', prefix: 'billing/' })
  })

  it('is stored only as a hash', async () => {
    const token = await service.token({ role: 'admin' })
    const { items } = await service.belfry.records.list({ kind: 'token', limit: 10 })
    const secret = token.slice(-43)
    expect(items).toHaveLength(1)
    expect(JSON.stringify(items)).not.toContain(secret)
    expect(await service.tokens.list({ limit: 10 })).toEqual({
      items: [expect.not.objectContaining({ hash: expect.anything() })],
    })
  })

  it.each([
    ['no token', {}],
    ['another scheme', { authorization: 'Basic YWRtaW46YWRtaW4=' }],
    ['nothing behind Bearer', { authorization: 'Bearer ' }],
    ['a token that was never made', bearer(`belfry_aaaaaaaaaaaa_${'A'.repeat(43)}`)],
    ['something long', bearer('x'.repeat(10_000))],
    ['two tokens', { authorization: `Bearer a, Bearer b` }],
    ['a cookie that is none', { cookie: 'belfry_session=admin' }],
    ['a prototype for a cookie', { cookie: '__proto__=1; belfry_session=__proto__' }],
  ])('is required: %s is refused', async (_, headers) => {
    const response = await service.ask('/v1/session', { headers })
    expect(response.headers.get('www-authenticate')).toBe('Bearer realm="belfry"')
    expect(await outcome(response)).toBe('401 UNAUTHENTICATED')
  })

  it('is refused when one character of its secret differs', async () => {
    const token = await service.token({ role: 'admin' })
    for (const at of [20, 40, token.length - 2]) {
      const other = token[at] === 'A' ? 'B' : 'A'
      const forged = token.slice(0, at) + other + token.slice(at + 1)
      expect(await outcome(await service.ask('/v1/session', { headers: bearer(forged) }))).toBe('401 UNAUTHENTICATED')
    }
  })

  it('is refused with the secret of another token', async () => {
    const [one, other] = [await service.token({ role: 'admin' }), await service.token({ role: 'viewer' })]
    const mixed = one.slice(0, 20) + other.slice(20)
    expect(await outcome(await service.ask('/v1/session', { headers: bearer(mixed) }))).toBe('401 UNAUTHENTICATED')
  })

  it('is cached briefly, and refused soon after it was revoked', async () => {
    const { token, info } = await service.tokens.create({ role: 'admin' })
    const ask = async () => outcome(await service.ask('/v1/session', { headers: bearer(token) }))
    const looks = () =>
      service.belfry.metrics.histograms().find(({ labels }) => labels.operation === 'records.get')?.value.count ?? 0
    expect(await ask()).toBe('200')
    const before = looks()
    for (let at = 0; at < 100; at += 1) expect(await ask()).toBe('200')
    expect(looks()).toBe(before)
    await service.tokens.revoke(info.id)
    await clock.advance(TRUST_MS)
    expect(await ask()).toBe('401 UNAUTHENTICATED')
  })

  it('is looked up once by concurrent requests', async () => {
    const token = await service.token({ role: 'admin' })
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => service.ask('/v1/session', { headers: bearer(token) })),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200))
    const looks = service.belfry.metrics.histograms().find(({ labels }) => labels.operation === 'records.get')
      ?.value.count
    expect(looks).toBe(1)
  })

  it('ends when it expires', async () => {
    const { token, info } = await service.tokens.create({ role: 'viewer', ttlMs: 1 })
    expect(info.expiresAt).toBe(info.createdAt + 1)
    await expect
      .poll(async () => {
        // A token that was checked just before it expired is trusted until its cache entry expires.
        await clock.advance(TRUST_MS)
        return outcome(await service.ask('/v1/session', { headers: bearer(token) }))
      })
      .toBe('401 UNAUTHENTICATED')
  })

  it('is not created with an invalid role or prefix', async () => {
    await expect(service.tokens.create({ role: 'root' as 'admin' })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(service.tokens.create({ role: 'admin', prefix: '' })).rejects.toMatchObject({ code: 'NAME_INVALID' })
    await expect(service.tokens.create({ role: 'admin', name: 'a\r\nb' })).rejects.toMatchObject({
      code: 'NAME_INVALID',
    })
  })

  it('is refused when its record was tampered with', async () => {
    const { token, info } = await service.tokens.create({ role: 'viewer' })
    for (const body of [null, [], 'x', { hash: 1 }, { role: 'admin' }, { hash: '', role: 'admin', name: 'x' }]) {
      await service.belfry.records.put({ kind: 'token', id: info.id, body })
      await clock.advance(TRUST_MS)
      expect(await outcome(await service.ask('/v1/session', { headers: bearer(token) }))).toBe('401 UNAUTHENTICATED')
    }
  })
})
