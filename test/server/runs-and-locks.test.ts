import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Caller } from '../../src/server/index.js'
import { createTestBelfry, type TestBelfry } from '../../src/testing/index.js'
import { type CheckedServer, checkedServer } from './checked-server.js'

let kit: TestBelfry
let server: CheckedServer
let ask: CheckedServer['ask']
let caller: Caller

beforeEach(async () => {
  kit = createTestBelfry({ now: '2026-01-01T08:00:00Z' })
  kit.belfry.job('ok', { run: ({ payload }) => payload })
  kit.belfry.job('fails', { retry: { attempts: 1 }, run: () => Promise.reject(new Error('no')) })
  kit.belfry.job('billing/charge', { exclusive: { by: ['user'] }, run: () => null })
  await kit.belfry.start()
  caller = { name: 'test', role: 'admin' }
  server = await checkedServer(kit.belfry, { authorise: async () => caller })
  ask = server.ask
})

afterEach(async () => {
  await server.close()
  await kit.belfry.stop()
})

const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  ask(path, { method, body, headers })
const enqueue = (job: string, body: unknown = {}, headers = {}) =>
  send('POST', `/v1/jobs/${encodeURIComponent(job)}/runs`, body, headers)

describe('runs', () => {
  it('are enqueued by job name, now or later, and waited for', async () => {
    const now = await enqueue('ok', { payload: { n: 1 }, wait: '5s' })
    expect([now.status, now.body.run.result]).toEqual([200, { n: 1 }])
    const later = await enqueue('ok', { in: '1h', priority: 3 })
    expect([later.status, later.body.run]).toMatchObject([202, { state: 'ready', readyAt: '2026-01-01T09:00:00.000Z' }])
    const at = await enqueue('ok', { at: '2026-02-01T00:00:00Z', key: 'once' })
    const again = await enqueue('ok', { key: 'once' })
    expect(again.body).toMatchObject({ outcome: 'duplicate', runId: at.body.runId })
    expect((await enqueue('ok', { in: '1h', at: 5 })).status).toBe(422)
    expect((await enqueue('ok', { in: 'soon' })).body.errors[0]).toMatchObject({ pointer: '/in' })
    expect((await enqueue(' ', {})).body.code).toBe('NAME_INVALID')
    const key = { 'idempotency-key': 'a' }
    const first = await enqueue('ok', {}, key)
    expect((await enqueue('ok', {}, key)).body).toEqual(first.body)
  })

  it('are listed newest first, filtered by job, schedule and state', async () => {
    for (const n of [1, 2, 3]) await enqueue('ok', { payload: n })
    await enqueue('fails')
    await kit.advance('1s')
    const page = await ask('/v1/runs?job=ok&limit=2')
    expect(page.body.data.map((run: { payload: number }) => run.payload)).toEqual([3, 2])
    const rest = await ask(`/v1/runs?job=ok&limit=2&cursor=${page.body.nextCursor}`)
    expect(rest.body).toMatchObject({ data: [{ payload: 1 }], nextCursor: null })
    expect((await ask('/v1/runs?state=failed,cancelled')).body.data).toMatchObject([
      { job: 'fails', error: { message: 'no' } },
    ])
    expect((await ask('/v1/runs?state=lazy')).body.errors[0].pointer).toBe('state')
    const one = await ask(`/v1/runs/${page.body.data[0].id}`)
    expect(one.body).toEqual(page.body.data[0])
    for (const id of ['x', '-1', '0', '99999999999999999999', '1e3', '..%2F']) {
      expect((await ask(`/v1/runs/${id}`)).status, id).toBe(404)
    }
  })

  it('are cancelled and retried, singly or in bulk', async () => {
    const { body } = await enqueue('ok', { in: '1h' })
    expect((await send('POST', `/v1/runs/${body.runId}/cancel`)).body).toEqual({ outcome: 'cancelled' })
    expect((await send('POST', `/v1/runs/${body.runId}/cancel`)).body).toEqual({ outcome: 'finished' })
    expect((await send('POST', `/v1/runs/${body.runId}/retry`)).body).toMatchObject({ id: body.runId })
    await kit.advance('1s')
    expect((await send('POST', `/v1/runs/${body.runId}/retry`)).body.code).toBe('TRANSITION_REFUSED')
    expect((await send('POST', '/v1/runs/77/retry')).status).toBe(404)
    for (let n = 0; n < 3; n += 1) await enqueue('fails')
    await kit.advance('1s')
    const some = await send('POST', '/v1/runs:retry', { job: 'fails', limit: 2 })
    expect(some.body.changed).toHaveLength(2)
    const others = await send('POST', '/v1/runs:retry', { job: 'fails', cursor: some.body.nextCursor })
    expect(others.body).toMatchObject({ refused: 0, nextCursor: null })
    expect(others.body.changed).toHaveLength(1)
    await enqueue('ok', { in: '1h' })
    expect((await send('POST', '/v1/runs:cancel', { job: 'ok' })).body.changed).toHaveLength(1)
    expect((await send('POST', '/v1/runs:cancel', { all: true, state: ['failed'] })).status).toBe(422)
  })
})

describe('jobs', () => {
  it('are the jobs of live instances', async () => {
    const { body } = await ask('/v1/jobs')
    expect(body.data).toMatchObject([
      { name: 'billing/charge', exclusive: { by: ['user'], limit: 1 }, instances: [kit.belfry.instance] },
      { name: 'fails' },
      { name: 'ok' },
    ])
  })
})

describe('locks', () => {
  it('are acquired, renewed and released by programs in any language', async () => {
    const got = await send('PUT', '/v1/locks/invoice%3A42', { ttl: '10s', holder: 'me' })
    expect(got.body).toMatchObject({ name: 'invoice:42', holder: 'me', expiresAt: '2026-01-01T08:00:10.000Z' })
    const { token } = got.body
    expect((await send('PUT', '/v1/locks/invoice%3A42', { ttl: '10s', holder: 'me' })).body.token).toBe(token)
    const busy = await send('PUT', '/v1/locks/invoice%3A42')
    expect([busy.status, busy.body.code]).toEqual([409, 'LOCK_BUSY'])
    const renewed = await send('PATCH', '/v1/locks/invoice%3A42', { token, ttl: '1m' })
    expect(renewed.body.expiresAt).toBe('2026-01-01T08:01:00.000Z')
    expect((await send('PATCH', '/v1/locks/invoice%3A42', { token: 1 })).body.code).toBe('LEASE_LOST')
    expect((await ask('/v1/locks?prefix=invoice')).body.data).toMatchObject([{ name: 'invoice:42', token }])
    expect((await ask('/v1/locks/invoice%3A42')).body.holders).toHaveLength(1)
    expect((await send('DELETE', '/v1/locks/invoice%3A42?token=1')).status).toBe(409)
    expect((await send('DELETE', `/v1/locks/invoice%3A42?token=${token}`)).status).toBe(204)
    expect((await ask('/v1/locks/invoice%3A42')).body.holders).toEqual([])
    expect((await send('DELETE', '/v1/locks/x')).body.errors[0].pointer).toBe('token')
  })

  it('can be released after their TTL until another holder takes them', async () => {
    const one = await send('PUT', '/v1/locks/a', { ttl: '5s', holder: 'me' })
    const other = await send('PUT', '/v1/locks/b', { ttl: '5s', holder: 'me' })
    await kit.advance('1m')
    await send('PUT', '/v1/locks/b', { holder: 'another' })
    expect((await send('DELETE', `/v1/locks/a?token=${one.body.token}&holder=me`)).status).toBe(204)
    expect((await send('DELETE', `/v1/locks/b?token=${other.body.token}&holder=me`)).body.code).toBe('LEASE_LOST')
  })

  it('can be waited for, and shared by permits', async () => {
    const first = await send('PUT', '/v1/locks/a', { permits: 2, ttl: '5s' })
    await send('PUT', '/v1/locks/a', { permits: 2, ttl: '20s' })
    const third = send('PUT', '/v1/locks/a', { permits: 2, wait: '10s' })
    await kit.advance('6s')
    expect((await third).body.token).toBeGreaterThan(first.body.token)
    const late = send('PUT', '/v1/locks/a', { permits: 2, wait: '1s' })
    await kit.advance('2s')
    expect((await late).status).toBe(409)
  })

  it('are reset by an admin', async () => {
    const { body } = await send('PUT', '/v1/locks/a', { ttl: '1h' })
    caller = { name: 'ops', role: 'operator' }
    expect((await send('POST', '/v1/locks/a/reset')).body.code).toBe('FORBIDDEN')
    caller = { name: 'boss', role: 'admin' }
    expect((await send('POST', '/v1/locks/a/reset')).body).toEqual({ reset: 1 })
    expect((await send('PATCH', '/v1/locks/a', { token: body.token })).status).toBe(409)
    const { body: audit } = await ask('/v1/audit')
    expect(audit.data[0]).toMatchObject({ caller: 'boss', action: 'lock.reset', target: 'a' })
  })
})

describe('the store', () => {
  it('can be frozen and thawed', async () => {
    expect((await send('PUT', '/v1/freeze', { note: 'migration' })).body).toMatchObject({
      frozen: true,
      note: 'migration',
    })
    expect((await ask('/v1/freeze')).body.frozen).toBe(true)
    expect((await ask('/v1/stats')).body).toMatchObject({ freeze: { frozen: true }, instances: { live: 1, gone: 0 } })
    expect((await send('DELETE', '/v1/freeze')).body).toEqual({ frozen: false })
    caller = { name: 'team', role: 'admin', prefix: 'billing/' }
    expect((await send('PUT', '/v1/freeze')).body.code).toBe('FORBIDDEN')
    caller = { name: 'eye', role: 'viewer' }
    expect((await send('PUT', '/v1/freeze')).body.code).toBe('FORBIDDEN')
  })

  it('lists live instances', async () => {
    expect((await ask('/v1/instances')).body.data).toMatchObject([
      { id: kit.belfry.instance, live: true, jobs: ['ok', 'fails', 'billing/charge'] },
    ])
    expect((await ask('/metrics')).body).toContain('belfry_')
    expect((await ask('/v1/session')).body).toMatchObject({ name: 'test' })
  })
})

describe('a caller with a prefix', () => {
  it('sees and changes only names that begin with it', async () => {
    const DAILY = { cron: '0 9 * * *', job: 'ok' }
    await send('PUT', '/v1/schedules/billing%2Fa', DAILY)
    await send('PUT', '/v1/schedules/other', DAILY)
    const theirs = (await send('POST', '/v1/schedules/other/trigger')).body.runId
    const own = (await send('POST', '/v1/schedules/billing%2Fa/trigger')).body.runId
    await send('PUT', '/v1/locks/other', { ttl: '1h' })
    caller = { name: 'team', role: 'admin', prefix: 'billing/' }
    expect((await ask('/v1/schedules')).body.data).toMatchObject([{ id: 'billing/a' }])
    expect((await ask('/v1/schedules?prefix=bill')).body.data).toHaveLength(1)
    expect((await ask('/v1/schedules?prefix=o')).body.data).toEqual([])
    expect((await ask('/v1/runs')).body.data).toMatchObject([{ id: own }])
    expect((await ask('/v1/jobs')).body.data).toMatchObject([{ name: 'billing/charge' }])
    expect((await ask('/v1/locks')).body.data).toEqual([])
    expect((await ask('/v1/locks/other')).body.holders).toEqual([])
    const statuses = [
      await ask('/v1/schedules/other'),
      await send('PATCH', '/v1/schedules/other', { priority: 1 }),
      await send('DELETE', '/v1/schedules/other'),
      await send('POST', '/v1/schedules/other/pause'),
      await send('POST', '/v1/schedules/other/resume'),
      await send('POST', '/v1/schedules/other/trigger'),
      await send('POST', '/v1/schedules/other/backfill', { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' }),
      await ask('/v1/schedules/other/explain?at=2026-01-01T00:00:00Z'),
      await ask('/v1/schedules/other/ticks?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z'),
      await ask(`/v1/runs/${theirs}`),
      await send('POST', `/v1/runs/${theirs}/cancel`),
      await send('POST', `/v1/runs/${theirs}/retry`),
    ].map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([404]))
    expect((await send('PUT', '/v1/schedules/other', DAILY)).status).toBe(403)
    expect((await send('POST', '/v1/schedules', { id: 'else', ...DAILY })).status).toBe(403)
    expect((await enqueue('ok')).status).toBe(403)
    expect((await send('PUT', '/v1/locks/else')).status).toBe(403)
    expect((await send('POST', '/v1/locks/other/reset')).body).toEqual({ reset: 0 })
    expect((await send('POST', '/v1/runs:cancel', { all: true })).body.changed).toEqual([])
    expect((await send('POST', '/v1/schedules', { ...DAILY, job: 'billing/charge' })).body.id).toMatch(/^billing\//)
    const audit = (await ask('/v1/audit')).body.data as { target: string }[]
    expect(audit.every(({ target }) => target.startsWith('billing/'))).toBe(true)
  })
})
