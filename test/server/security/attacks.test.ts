/** Attacks by a caller whose token permits less than it tries. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { everything } from './raw-service.js'
import { bearer, outcome, type SecuredService, securedService } from './secured-service.js'

interface Operation {
  readonly method: string
  readonly path: string
  readonly role: string | undefined
}

let service: SecuredService

beforeEach(async () => {
  service = await securedService()
  await service.belfry.schedules.put('billing/1', { every: '1h', job: 'invoice', payload: { card: 'visa-4111' } })
  await service.belfry.schedules.put('shop/1', { every: '1h', job: 'stock' })
})

afterEach(() => service.close())

async function operations(): Promise<readonly Operation[]> {
  const document = (await (await service.ask('/openapi.json')).json()) as {
    paths: Record<string, Record<string, { 'x-role'?: string }>>
  }
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { 'x-role': role }]) => ({ method: method.toUpperCase(), path, role })),
  )
}

const OPEN = ['GET /openapi.json', 'GET /healthz', 'GET /readyz', 'POST /v1/session', 'DELETE /v1/session']

function at(path: string, id: string): string {
  return path.replaceAll(/\{\w+\}/g, encodeURIComponent(id))
}

function asked({ method }: Operation, headers: Record<string, string> = {}, body: unknown = {}) {
  return { method, headers, ...(method === 'GET' ? {} : { body }) }
}

/** For most operations one of these bodies is valid; each refers to something outside of shop/. */
const BODIES: readonly unknown[] = [
  {},
  { ttl: '1m' },
  { every: '1h', job: 'x' },
  { id: 'billing/2', every: '1h', job: 'x' },
  { schedule: 'billing/1' },
  { schedule: 'billing/1', state: ['ready', 'waiting', 'failed', 'cancelled'] },
  { note: 'mine' },
  { token: 1 },
  { payload: 1 },
  { schedules: [{ id: 'billing/1', every: '2h', job: 'x' }], prune: true },
  { schedules: { 'billing/1': { every: '2h', job: 'x' } }, prefix: 'billing/', prune: true },
  { from: '2026-01-01T00:00:00Z', to: '2026-01-01T03:00:00Z' },
]

/**
 * Sends every operation with all of these ids, and returns the answers. The ids themselves are removed from the
 * answers, because an answer may repeat the request.
 */
async function sweep(ids: readonly string[], headers: Record<string, string>): Promise<string[]> {
  const answers: string[] = []
  for (const operation of await operations()) {
    if (OPEN.includes(`${operation.method} ${operation.path}`)) continue
    const wanted = (operation.path.includes('{') ? ids : ['']).flatMap((id) => BODIES.map((body) => ({ id, body })))
    for (const { id, body } of wanted) {
      const response = await service.ask(at(operation.path, id), asked(operation, headers, body))
      expect(response.status).toBeLessThan(500)
      if (response.headers.get('content-type') === 'text/event-stream') await response.body?.cancel()
      else {
        const text = (await response.text()).replaceAll(id, '').replaceAll(encodeURIComponent(id), '')
        answers.push(`${operation.method} ${operation.path} ${id}: ${text}`)
      }
    }
  }
  return answers
}

/** The contents that a token for shop/ must not change. */
async function outside(): Promise<unknown> {
  const { schedules, runs, locks, ...belfry } = {
    schedules: await service.belfry.schedules.list({ limit: 1_000 }),
    runs: await service.belfry.runs.list({ limit: 1_000 }),
    locks: await service.belfry.locks.list({ limit: 1_000 }),
    frozen: await service.belfry.frozen(),
    tokens: await service.tokens.list({ limit: 1_000 }),
  }
  const isOutside = (id: string | undefined) => !id?.startsWith('shop/')
  return {
    schedules: schedules.items.filter(({ id }) => isOutside(id)),
    runs: runs.items.filter(({ schedule }) => isOutside(schedule)),
    // Renewals of a held lock change its expiry, so only name and token are compared.
    locks: locks.items.filter(({ name }) => isOutside(name)).map(({ name, token }) => ({ name, token })),
    ...belfry,
  }
}

describe('without a token', () => {
  it('every operation except the open ones is refused, and changes nothing', async () => {
    const before = await everything(service.belfry)
    const all = await operations()
    expect(all.length).toBeGreaterThan(10)
    for (const operation of all) {
      const name = `${operation.method} ${operation.path}`
      const answer = await outcome(await service.ask(at(operation.path, 'billing/1'), asked(operation)))
      if (!OPEN.includes(name)) expect(`${name}: ${answer}`).toBe(`${name}: 401 UNAUTHENTICATED`)
    }
    expect(await everything(service.belfry)).toBe(before)
  })

  it('existing and missing resources get the same answer', async () => {
    for (const path of ['/v1/schedules/billing%2F1', '/v1/schedules/nothing', '/v1/nowhere', '/admin', '/']) {
      expect(await outcome(await service.ask(path))).toBe('401 UNAUTHENTICATED')
    }
  })
})

describe('a caller without the required role', () => {
  const ranks = ['viewer', 'operator', 'admin'] as const

  it.each(['viewer', 'operator'] as const)(
    '(%s) is refused before the request is checked any further',
    async (role) => {
      const headers = bearer(await service.token({ role }))
      const before = await everything(service.belfry)
      const higher = ranks.slice(ranks.indexOf(role) + 1)
      const beyond = (await operations()).filter((each) => higher.some((rank) => rank === each.role))
      expect(beyond.length).toBeGreaterThan(1)
      for (const operation of beyond) {
        for (const body of ['{', ...BODIES]) {
          const response = await service.ask(at(operation.path, 'billing/1'), asked(operation, headers, body))
          const name = `${operation.method} ${operation.path}`
          expect(`${name}: ${await outcome(response)}`).toBe(`${name}: 403 FORBIDDEN`)
        }
      }
      expect(await everything(service.belfry)).toBe(before)
    },
  )
})

describe('a viewer', () => {
  it('changes nothing by any operation', async () => {
    const token = await service.token({ role: 'viewer' })
    const before = await everything(service.belfry)
    let refused = 0
    for (const operation of await operations()) {
      if (operation.method === 'GET' || operation.path === '/v1/session') continue
      const response = await service.ask(at(operation.path, 'billing/1'), asked(operation, bearer(token)))
      if (response.status === 403) refused += 1
      // Read-only operations, such as a preview, may use POST.
      else expect([200, 400, 404, 415, 422]).toContain(response.status)
    }
    expect(refused).toBeGreaterThan(5)
    expect(await everything(service.belfry)).toBe(before)
  })
})

describe('a token for shop/', () => {
  it.each(['viewer', 'operator', 'admin'] as const)('(%s) neither sees nor changes names outside', async (role) => {
    // With one request id, because answers name it.
    const headers = { ...bearer(await service.token({ role, prefix: 'shop/' })), 'x-request-id': 'same' }
    const before = await everything(service.belfry)
    for (const operation of await operations()) {
      if (!operation.path.startsWith('/v1/schedules/{id}')) continue
      const answers: string[] = []
      // The second id does not exist; the answers must not differ.
      for (const id of ['billing/1', 'billing/2']) {
        const response = await service.ask(at(operation.path, id), asked(operation, headers))
        expect([400, 403, 404, 422]).toContain(response.status)
        answers.push((await response.text()).replaceAll(/billing(\/|%2F)\d/g, 'it'))
      }
      expect(answers[0]).toBe(answers[1])
      expect(answers[0]).not.toMatch(/visa-4111|invoice/)
    }
    expect(await everything(service.belfry)).toBe(before)
  })

  it('learns and changes nothing outside, by any operation on any id', {
    timeout: 120_000,
  }, async () => {
    const { belfry } = service
    const headers = bearer(await service.token({ role: 'admin', prefix: 'shop/' }))
    const triggered = await belfry.schedules.trigger('billing/1')
    const lock = await belfry.lock('billing/lock', { ttl: '10m' })
    // The test searches answers for this name. A token's id cannot contain it by chance, because ids have no "-".
    const ana = await service.token({ role: 'admin', name: 'ana-1' })
    await service.ask('/v1/schedules/billing%2F1/pause', { method: 'POST', headers: bearer(ana), body: {} })
    const { items } = await belfry.runs.list()
    const before = await outside()
    const ids = ['billing/1', 'billing/lock', items[0]?.id ?? '', JSON.stringify(triggered)]
    const secret = /: .*(visa-4111|invoice|billing|"ana-1)/
    expect((await sweep(ids, headers)).filter((answer) => secret.test(answer))).toEqual([])
    expect(await outside()).toEqual(before)
    // Proves that the requests work: for a caller without a prefix, the same ones read and change names outside of
    // shop/.
    expect((await sweep(ids, bearer(ana))).filter((answer) => secret.test(answer)).length).toBeGreaterThan(5)
    expect(await outside()).not.toEqual(before)
    await lock?.release()
  })

  it.each([
    'billing/1',
    'shop',
    'SHOP/1',
    'shop/../billing/1',
    './shop/1',
    'shop%2F1',
    '/shop/1',
    '\u0073hop\u002f\u0000',
    ' shop/1',
  ])('cannot create schedule %j outside its prefix by a path trick', async (id) => {
    const headers = bearer(await service.token({ role: 'admin', prefix: 'shop/' }))
    const body = { every: '1h', job: 'shop/x' }
    const put = await service.ask(`/v1/schedules/${encodeURIComponent(id)}`, { method: 'PUT', headers, body })
    const post = await service.ask('/v1/schedules', { method: 'POST', headers, body: { id, ...body } })
    const { items } = await service.belfry.schedules.list()
    // "shop/../billing/1" is an ordinary id inside the prefix; dots have no meaning in ids.
    const inside = id.startsWith('shop/') && !id.includes('\u0000')
    expect([put.status, post.status]).toEqual(
      inside
        ? [201, 409]
        : [expect.toSatisfy((s) => s >= 400 && s < 500), expect.toSatisfy((s) => s >= 400 && s < 500)],
    )
    expect(items.map((each) => each.id)).toEqual(['billing/1', 'shop/1', ...(inside ? [id] : [])].sort())
  })

  it('lists only names inside, whatever prefix it asks for', async () => {
    const headers = bearer(await service.token({ role: 'admin', prefix: 'shop/' }))
    for (const query of ['', '?prefix=', '?prefix=billing/', '?prefix=s', '?job=invoice', '?prefix=shop/1']) {
      const response = await service.ask(`/v1/schedules${query}`, { headers })
      expect(await response.text()).not.toContain('billing')
    }
  })

  it('cannot use an invented cursor', async () => {
    const headers = bearer(await service.token({ role: 'viewer', prefix: 'shop/' }))
    for (const text of ['billing/', '', 'a', '{"after":"a"}', '\u0000']) {
      const cursor = Buffer.from(text).toString('base64url')
      const response = await service.ask(`/v1/schedules?cursor=${cursor}`, { headers })
      expect(response.status).toBeLessThan(500)
      expect(await response.text()).not.toContain('billing')
    }
  })
})

describe('a body', () => {
  const put = async (body: string, headers: Record<string, string> = {}) => {
    const token = bearer(await service.token({ role: 'admin' }))
    const type = { 'content-type': 'application/json', ...headers }
    return service.ask('/v1/schedules/new', { method: 'PUT', headers: { ...token, ...type }, body })
  }

  it.each([
    ['nested too deep', `{"every":"1h","job":"x","payload":${'['.repeat(65)}${']'.repeat(65)}}`],
    ['nested absurdly deep', '['.repeat(500_000)],
    ['nested absurdly deep, by objects', '{"a":'.repeat(100_000)],
    ['larger than is allowed', `{"payload":"${'x'.repeat(1_100_000)}"}`],
    ['a payload larger than is allowed', `{"every":"1h","job":"x","payload":"${'x'.repeat(300_000)}"}`],
    ['with a prototype', '{"every":"1h","job":"x","__proto__":{"role":"admin"}}'],
    ['with a prototype inside', '{"every":"1h","job":"x","payload":{"a":[{"__proto__":{"x":1}}]}}'],
    ['with a prototype in disguise', '{"every":"1h","job":"x","payload":{"__pr\\u006fto__":{"x":1}}}'],
    ['with a prototype all in disguise', '{"every":"1h","job":"x","payload":{"\\u005f\\u005Fproto\\u005f\\u005f":1}}'],
    ['with a constructor for a field', '{"every":"1h","job":"x","constructor":{"prototype":{"x":1}}}'],
    ['with half a character', '{"every":"1h","job":"\\ud800"}'],
    ['with a number that is none', '{"every":1e999,"job":"x"}'],
    ['not JSON', '{"every":"1h",}'],
    ['nothing', ''],
    ['null', 'null'],
    ['a list', '[]'],
    ['a text', '"__proto__"'],
  ])('%s is refused and changes nothing', async (_, body) => {
    const before = await service.belfry.schedules.list()
    const response = await put(body)
    expect(response.status).toBeGreaterThanOrEqual(400)
    expect(response.status).toBeLessThan(500)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(await service.belfry.schedules.list()).toEqual(before)
    expect(({} as Record<string, unknown>).role).toBeUndefined()
    expect(({} as Record<string, unknown>).x).toBeUndefined()
  })

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
    'of type %s, which any web page may send, is refused',
    async (type) => {
      const response = await put('{"every":"1h","job":"x"}', { 'content-type': type })
      expect(await outcome(response)).toBe('415 MEDIA_TYPE_UNSUPPORTED')
    },
  )
})

describe('an answer', () => {
  it('never contains a header that an id injected', async () => {
    const headers = bearer(await service.token({ role: 'admin' }))
    for (const id of ['a\r\nset-cookie: x=1', 'a\nb', 'a\u0000b', 'ü/ß', '\u{1f514}', 'a b', '"quoted"', '%0d%0a']) {
      const body = { id, every: '1h', job: 'x' }
      const response = await service.ask('/v1/schedules', { method: 'POST', headers, body })
      expect(response.status).toBeLessThan(500)
      expect(response.headers.get('set-cookie')).toBeNull()
      expect(response.headers.get('location') ?? '').toMatch(/^[\x21-\x7e]*$/)
    }
  })
})
