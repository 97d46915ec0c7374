/** Quotas of tokens: how much there may be below a prefix, on every store, and how fast imports go. */
import { afterEach, describe, expect, it } from 'vitest'
import { createBelfry, silentLogger } from '../../../src/index.js'
import type { NewToken } from '../../../src/server/index.js'
import { ImportPace } from '../../../src/server/security/import-pace.js'
import { Usage } from '../../../src/server/security/usage.js'
import { manualClock } from '../../../src/testing/index.js'
import { type OpenedStore, openedStores } from './opened-stores.js'
import { bearer, outcome, type SecuredService, securedService } from './secured-service.js'

let close = async () => {}
afterEach(() => close())

async function opened(open: () => Promise<OpenedStore> = openedStores.memory): Promise<SecuredService> {
  const { store, close: closeStore } = await open()
  const belfry = createBelfry({ store, roles: [], logger: silentLogger })
  const service = await securedService({ belfry })
  close = async () => {
    await service.close()
    await closeStore()
  }
  // Of others, and of no account.
  for (const id of ['b/1', 'b/2', 'b/3', 'a']) await belfry.schedules.put(id, DAY)
  for (const id of ['b/1', 'b/2', 'b/3']) await belfry.schedules.trigger(id)
  return service
}

const DAY = { every: '1d', job: 'a/job' }

async function caller(service: SecuredService, quota: NewToken['quota'], over: Partial<NewToken> = {}) {
  const token = { role: 'admin', prefix: 'a/', name: 'ci', ...over, ...(quota === undefined ? {} : { quota }) } as const
  const headers = bearer(await service.token(token))
  return async (method: string, path: string, body?: unknown, type = 'application/json') =>
    service.ask(path, {
      method,
      headers: { ...headers, 'content-type': type },
      ...(body === undefined ? {} : { body }),
    })
}

type Ask = Awaited<ReturnType<typeof caller>>

async function put(ask: Ask, id: string, schedule: object = DAY): Promise<string> {
  return outcome(await ask('PUT', `/v1/schedules/${encodeURIComponent(id)}`, schedule))
}

const OVER = '409 QUOTA_EXCEEDED'

describe.each(Object.entries(openedStores))('on %s, a quota', (_, open) => {
  it('of schedules refuses new ones below the prefix, by every route, with the number', async () => {
    const service = await opened(open)
    const ask = await caller(service, { schedules: 3 })
    expect([await put(ask, 'a/1'), await put(ask, 'a/2'), await put(ask, 'a/3')]).toEqual(['201', '201', '201'])
    const refused = await ask('PUT', '/v1/schedules/a%2F4', DAY)
    expect(await refused.clone().json()).toMatchObject({ quota: 3, used: 3 })
    expect(((await refused.clone().json()) as { detail: string }).detail).toMatch(
      /^"ci \(\w+\)" may have at most 3 schedules below "a\/", and 3 are there or being made$/,
    )
    expect(await outcome(refused)).toBe(OVER)
    expect(await outcome(await ask('POST', '/v1/schedules', DAY))).toBe(OVER)
    expect(await outcome(await ask('POST', '/v1/schedules:apply', { schedules: { 'a/4': DAY } }))).toBe(OVER)
    // A schedule that exists is written all the same, and a change that makes as many as it removes is allowed.
    expect(await put(ask, 'a/3', { ...DAY, every: '2d' })).toBe('200')
    const lines = ['a/3', 'a/4', 'a/2'].map((id) => JSON.stringify({ id, ...DAY })).join('\n')
    const imported = await ask('POST', '/v1/schedules:import', lines, 'application/x-ndjson')
    expect(await imported.json()).toMatchObject({
      ...{ created: 0, updated: 1, unchanged: 1, refused: 1 },
      errors: [{ line: 2, id: 'a/4', code: 'QUOTA_EXCEEDED' }],
    })
    const swapped = { schedules: { 'a/1': DAY, 'a/2': DAY, 'a/5': DAY }, prune: true, prefix: 'a/' }
    expect(await outcome(await ask('POST', '/v1/schedules:apply', swapped))).toBe('200')
    expect((await service.belfry.schedules.list({ prefix: 'a/' })).items.map(({ id }) => id)).toEqual([
      'a/1',
      'a/2',
      'a/5',
    ])
    await ask('DELETE', '/v1/schedules/a%2F5')
    await expect.poll(() => put(ask, 'a/6')).toBe('201')
  })

  it('of unfinished runs refuses new ones, by every route, until some have ended', async () => {
    const service = await opened(open)
    const ask = await caller(service, { runs: 3 })
    await put(ask, 'a/1', { cron: '0 0 * * *', job: 'a/job' })
    const enqueue = async () => outcome(await ask('POST', '/v1/jobs/a%2Fjob/runs', {}))
    const trigger = async () => outcome(await ask('POST', '/v1/schedules/a%2F1/trigger', {}))
    const { runId } = (await (await ask('POST', '/v1/jobs/a%2Fjob/runs', {})).json()) as { runId: string }
    expect([await enqueue(), await trigger(), await enqueue(), await trigger()]).toEqual(['202', '202', OVER, OVER])
    const range = { from: '2020-01-01T00:00:00Z', to: '2020-01-03T00:00:00Z' }
    expect(await outcome(await ask('POST', '/v1/schedules/a%2F1/backfill', range))).toBe(OVER)
    expect(await outcome(await ask('POST', `/v1/runs/${runId}/cancel`, {}))).toBe('200')
    await expect.poll(trigger).toBe('202')
    expect(await outcome(await ask('POST', `/v1/runs/${runId}/retry`, {}))).toBe(OVER)
    expect(await outcome(await ask('POST', '/v1/runs:retry', { all: true }))).toBe(OVER)
    const stats = (await (await ask('GET', '/v1/stats')).json()) as { usage: object; due?: object }
    expect(stats.usage).toEqual({
      schedules: { count: 1, more: false },
      runs: { count: 3, more: false, quota: 3 },
      locks: { count: 0, more: false },
    })
    expect(stats.due).toBeUndefined()
  })

  it('of locks refuses new ones, and not the holder’s own again', async () => {
    const service = await opened(open)
    const ask = await caller(service, { locks: 2 })
    const acquire = async (name: string, holder = 'me') =>
      outcome(await ask('PUT', `/v1/locks/${encodeURIComponent(name)}`, { ttl: '1h', holder }))
    expect([await acquire('a/1'), await acquire('a/2'), await acquire('a/3')]).toEqual(['200', '200', OVER])
    expect(await acquire('a/1')).toBe('200')
    expect(await outcome(await ask('POST', '/v1/locks/a%2F1/reset', {}))).toBe('200')
    await expect.poll(() => acquire('a/3')).toBe('200')
  })
})

describe('a quota', () => {
  it('holds against many requests at once, from all tokens of the prefix', async () => {
    const service = await opened()
    const [one, other] = [await caller(service, { schedules: 10 }), await caller(service, { schedules: 8 })]
    const answers = await Promise.all(Array.from({ length: 60 }, (_, at) => put(at % 2 === 0 ? one : other, `a/${at}`)))
    expect(answers.filter((answer) => answer === '201').length).toBeLessThanOrEqual(10)
    expect(answers.filter((answer) => answer === OVER).length).toBeGreaterThanOrEqual(50)
    expect((await service.belfry.schedules.list({ prefix: 'a/' })).items.length).toBeGreaterThanOrEqual(8)
    await expect.poll(() => put(one, `a/last-${Math.random()}`)).toBe(OVER)
  })

  it('counts an import line by line, also where two batches are under way', async () => {
    const service = await opened()
    const ask = await caller(service, { schedules: 1_500 })
    const lines = Array.from({ length: 2_500 }, (_, at) => JSON.stringify({ id: `a/${at}`, ...DAY })).join('\n')
    const answer = await ask('POST', '/v1/schedules:import', lines, 'application/x-ndjson')
    expect(await answer.json()).toMatchObject({ created: 1_500, refused: 1_000 })
  })

  it('reads a count at most once a second, however many requests there are', async () => {
    const service = await opened()
    const ask = await caller(service, { schedules: 100_000 })
    let reads = 0
    const { count } = service.belfry.schedules
    service.belfry.schedules.count = (query) => {
      reads += 1
      return count.call(service.belfry.schedules, query)
    }
    for (let at = 0; at < 100; at += 1) expect(await put(ask, `a/${at}`)).toBe('201')
    expect(reads).toBeLessThanOrEqual(5)
  })

  it('does not count a request that failed for good', async () => {
    const service = await opened()
    const clock = manualClock()
    const usage = new Usage(service.belfry, clock)
    const ci = { name: 'ci', role: 'operator', prefix: 'a/', quota: { schedules: 1 } } as const
    await expect(usage.within(ci, 'schedules', 1, () => Promise.reject(new Error('refused')))).rejects.toThrow(
      'refused',
    )
    await clock.advance(100)
    expect(await usage.within(ci, 'schedules', 1, async () => 'made')).toBe('made')
  })

  it.each([
    { schedules: -1 },
    { runs: 1.5 },
    { locks: 1_001 },
    { importRate: 0 },
    { schedule: 1 },
    { runs: '3' },
    [],
    'none',
  ])('is refused for a new token: %j', async (quota) => {
    const service = await opened()
    const wanted = { role: 'operator', quota } as NewToken
    await expect(service.tokens.create(wanted)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

describe('the rate of imports', () => {
  const ci = { name: 'ci', role: 'operator', prefix: 'a/', quota: { importRate: 100 } } as const

  it('lets lines through at that rate, and refuses another import until they are through', async () => {
    const clock = manualClock()
    const pace = new ImportPace(clock)
    let isThrough = false
    const taken = pace
      .take(ci, 300, () => {})
      .then(() => {
        isThrough = true
      })
    expect(() => pace.begin({ ...ci, name: 'another token of the prefix' })).toThrow(
      expect.objectContaining({
        code: 'RATE_LIMITED',
        message: 'imports of "another token of the prefix" take 100 lines a second, and it has sent more',
      }),
    )
    pace.begin({ ...ci, prefix: 'b/' })
    for (let step = 0; step < 29; step += 1) await clock.advance(100)
    expect(isThrough).toBe(false)
    for (let step = 0; step < 2; step += 1) await clock.advance(100)
    await taken
    pace.begin(ci)
  })

  it('ends with the import', async () => {
    const clock = manualClock()
    const pace = new ImportPace(clock)
    const stopped = new Error('stopped')
    const taken = pace.take(ci, 100_000, () => {
      throw stopped
    })
    taken.catch(() => {})
    await clock.advance(1_000)
    await expect(taken).rejects.toBe(stopped)
  })

  it('is kept over HTTP', async () => {
    const service = await opened()
    const ask = await caller(service, { importRate: 100 })
    const lines = Array.from({ length: 50 }, (_, at) => JSON.stringify({ id: `a/${at}`, ...DAY })).join('\n')
    const before = performance.now()
    const send = () => ask('POST', '/v1/schedules:import', lines, 'application/x-ndjson')
    expect(await outcome(await send())).toBe('200')
    expect(performance.now() - before).toBeGreaterThan(400)
  })
})
