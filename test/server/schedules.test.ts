import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestBelfry, type TestBelfry } from '../../src/testing/index.js'
import { type CheckedServer, checkedServer } from './checked-server.js'

let kit: TestBelfry
let server: CheckedServer
let ask: CheckedServer['ask']

beforeEach(async () => {
  kit = createTestBelfry({ now: '2026-01-01T08:00:00Z' })
  kit.belfry.job('digest', { run: ({ payload }) => ({ sent: payload }) })
  await kit.belfry.start()
  server = await checkedServer(kit.belfry)
  ask = server.ask
})

afterEach(async () => {
  await server.close()
  await kit.belfry.stop()
})

const DAILY = { cron: '0 9 * * *', job: 'digest', payload: { region: 'eu' } }
const put = (id: string, body: unknown = DAILY, headers: Record<string, string> = {}) =>
  ask(`/v1/schedules/${encodeURIComponent(id)}`, { method: 'PUT', body, headers })
const post = (path: string, body?: unknown, headers: Record<string, string> = {}) =>
  ask(path, { method: 'POST', body, headers })

describe('a schedule', () => {
  it('is created under the caller’s id, and the answer has the next tick in words and as an instant', async () => {
    const made = await put('digest/eu')
    expect(made.status).toBe(201)
    expect(made.headers.get('etag')).toBe(`"${made.body.version}"`)
    expect(made.body).toMatchObject({
      id: 'digest/eu',
      state: 'active',
      cron: '0 9 * * *',
      next: '2026-01-01T09:00:00.000Z',
      description: 'At 09:00, UTC',
    })
    expect((await ask('/v1/schedules/digest%2Feu')).body).toEqual(made.body)
    const again = await put('digest/eu')
    expect([again.status, again.body.version]).toEqual([200, made.body.version])
  })

  it('gets a generated id, once per Idempotency-Key', async () => {
    const key = { 'idempotency-key': 'order-7' }
    const first = await post('/v1/schedules', DAILY, key)
    expect(first.status).toBe(201)
    const again = await post('/v1/schedules', DAILY, key)
    expect(again.body).toEqual(first.body)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.headers.get('location')).toBe(`/v1/schedules/${first.body.id}`)
    const other = await post('/v1/schedules', { ...DAILY, priority: 1 }, key)
    expect([other.status, other.body.code]).toEqual([422, 'IDEMPOTENCY_MISMATCH'])
    expect((await post('/v1/schedules', DAILY)).body.id).not.toBe(first.body.id)
    expect((await ask('/v1/schedules')).body.data).toHaveLength(2)
  })

  it('does not reserve the Idempotency-Key for an invalid body', async () => {
    const key = { 'idempotency-key': 'order-8' }
    const wrong = { ...DAILY, overlap: 7 }
    const answers = await Promise.all([
      post('/v1/schedules', wrong, key),
      post('/v1/schedules', wrong, key),
      post('/v1/schedules', DAILY, key),
    ])
    expect(answers.map(({ status }) => status)).toEqual([422, 422, 201])
    expect(answers[0].body.errors[0].pointer).toBe('/overlap')
  })

  it('is not created under an existing id', async () => {
    expect((await post('/v1/schedules', { id: 'x', ...DAILY })).status).toBe(201)
    const taken = await post('/v1/schedules', { id: 'x', ...DAILY })
    expect([taken.status, taken.body.code]).toEqual([409, 'SCHEDULE_DUPLICATE'])
  })

  it('is updated only over the expected version', async () => {
    const { body } = await put('x', DAILY, { 'if-none-match': '*' })
    expect((await put('x', DAILY, { 'if-none-match': '*' })).body.code).toBe('VERSION_CONFLICT')
    const next = await put('x', { ...DAILY, priority: 2 }, { 'if-match': `"${body.version}"` })
    expect(next.status).toBe(200)
    const stale = await put('x', DAILY, { 'if-match': `"${body.version}"` })
    expect([stale.status, stale.body.code]).toEqual([412, 'VERSION_CONFLICT'])
    expect((await put('x', DAILY, { 'if-match': `"1", W/"${next.body.version}"` })).status).toBe(200)
    expect((await put('nobody', DAILY, { 'if-match': '*' })).status).toBe(412)
    expect((await put('x', DAILY, { 'if-match': 'yes' })).status).toBe(400)
    const version = (await ask('/v1/schedules/x')).headers.get('etag') ?? ''
    const wrong = await ask('/v1/schedules/x', { method: 'DELETE', headers: { 'if-match': '"1"' } })
    expect(wrong.status).toBe(412)
    const gone = await ask('/v1/schedules/x', { method: 'DELETE', headers: { 'if-match': version } })
    expect(gone.status).toBe(204)
    expect((await ask('/v1/schedules/x')).status).toBe(404)
    expect((await ask('/v1/schedules/x', { method: 'DELETE' })).body.code).toBe('SCHEDULE_NOT_FOUND')
  })

  it('is patched field by field', async () => {
    await put('x')
    const patched = await ask('/v1/schedules/x', { method: 'PATCH', body: { every: '15m', payload: null } })
    expect(patched.body).toMatchObject({ every: '15m', job: 'digest', payload: null })
    expect(patched.body.cron).toBeUndefined()
    expect((await ask('/v1/schedules/y', { method: 'PATCH', body: {} })).status).toBe(404)
    const bad = await ask('/v1/schedules/x', { method: 'PATCH', body: { every: 'often' } })
    expect(bad.body).toMatchObject({ code: 'DURATION_SYNTAX', errors: [{ pointer: '/every' }] })
  })

  it('is refused with a pointer to each invalid field', async () => {
    const { status, body } = await put('x', { cron: '61 * * * *', timezone: 'Mars/Base', job: '', hurry: true })
    expect([status, body.code]).toEqual([422, 'BODY_INVALID'])
    const errors = body.errors as { pointer: string; code?: string }[]
    expect(errors.map(({ pointer, code }) => [pointer, code])).toEqual([
      ['/cron', 'EXPRESSION_OUT_OF_RANGE'],
      ['/timezone', 'ZONE_UNKNOWN'],
      ['/job', 'NAME_INVALID'],
      ['/hurry', undefined],
    ])
    expect((await put('x', { job: 'digest' })).body).toMatchObject({ code: 'OPTION_INVALID', status: 422 })
    expect((await put('x', { at: '2001-01-01T00:00:00Z', job: 'digest' })).status).toBe(422)
    expect((await put('x', { ...DAILY, missed: { policy: 'all', max: 'x' } })).body.errors[0].pointer).toBe(
      '/missed/max',
    )
    expect((await put('x', '{"cron": ')).body.code).toBe('JSON_INVALID')
    expect((await put('x', '{"cron": "@daily", "job": "a", "payload": {"__proto__": 1}}')).status).toBe(422)
    expect((await put('x', DAILY, { 'content-type': 'text/plain' })).status).toBe(415)
    expect((await put('x', { ...DAILY, payload: 'a'.repeat(1_100_000) })).status).toBe(413)
    expect((await put('x', { ...DAILY, payload: 'a'.repeat(300_000) })).body.code).toBe('PAYLOAD_INVALID')
    expect((await put('x', `{"payload":${'['.repeat(500)}${']'.repeat(500)}}`)).body.code).toBe('PAYLOAD_INVALID')
    expect((await ask('/v1/schedules/x')).status).toBe(404)
  })

  it('may have any id that the library allows, as one path segment', async () => {
    for (const id of ['a b', 'ü/ñ?#%2F', 'x:pause', 'quote\'"', 'a%b', '日本/語', '...', ' x'.trim()]) {
      expect((await put(id)).status, id).toBe(201)
      expect((await ask(`/v1/schedules/${encodeURIComponent(id)}`)).body.id).toBe(id)
    }
    expect((await put('\u0000')).body.code).toBe('REQUEST_INVALID')
    for (const id of [' x', 'x'.repeat(256)]) expect((await put(id)).body.code, id).toBe('NAME_INVALID')
    expect((await post('/v1/schedules', { id: '..', ...DAILY })).status).toBe(422)
    expect((await ask('/v1/schedules/%ff')).body.code).toBe('REQUEST_INVALID')
  })
})

describe('the list', () => {
  it('is paged, and filtered by prefix, state and target', async () => {
    for (const id of ['a/1', 'a/2', 'a/3', 'b/1']) await put(id)
    await put('a/4', { every: '1h', to: 'kafka' })
    await post('/v1/schedules/a%2F2/pause', { note: 'holiday' })
    const first = await ask('/v1/schedules?prefix=a/&limit=3')
    expect(first.body.data.map(({ id }: { id: string }) => id)).toEqual(['a/1', 'a/2', 'a/3'])
    const second = await ask(`/v1/schedules?prefix=a/&limit=3&cursor=${first.body.nextCursor}`)
    expect(second.body).toMatchObject({ data: [{ id: 'a/4' }], nextCursor: null })
    expect((await ask('/v1/schedules?state=paused')).body.data).toMatchObject([{ id: 'a/2', pauseNote: 'holiday' }])
    expect((await ask('/v1/schedules?to=kafka')).body.data).toMatchObject([{ id: 'a/4', to: 'kafka' }])
    expect((await ask('/v1/schedules?job=digest&limit=1000')).body.data).toHaveLength(4)
  })

  it('refuses unknown parameters and invalid values', async () => {
    for (const query of [
      'limit=0',
      'limit=1001',
      'limit=x',
      'state=lazy',
      'cursor=!',
      'cursor=',
      'hurry=1',
      'limit=1&limit=2',
    ]) {
      const { status, body } = await ask(`/v1/schedules?${query}`)
      expect([status, body.code], query).toEqual([400, 'REQUEST_INVALID'])
      expect(body.errors[0].pointer).toBe(query.split('=')[0])
    }
  })
})

describe('an operation on a schedule', () => {
  it('pauses and resumes it', async () => {
    await put('x')
    const paused = await post('/v1/schedules/x/pause', { note: 'holiday' })
    expect(paused.body).toMatchObject({ state: 'paused', next: null, pauseNote: 'holiday' })
    const resumed = await post('/v1/schedules/x/resume')
    expect(resumed.body).toMatchObject({ state: 'active', next: '2026-01-01T09:00:00.000Z' })
    expect((await post('/v1/schedules/y/pause')).status).toBe(404)
  })

  it('triggers it, and waits for the result on request', async () => {
    await put('x')
    const soon = await post('/v1/schedules/x/trigger')
    expect(soon.status).toBe(202)
    const ended = await post('/v1/schedules/x/trigger', { payload: { region: 'us' }, wait: '10s' })
    expect(ended.status).toBe(200)
    expect(ended.body).toMatchObject({
      outcome: 'enqueued',
      run: { state: 'succeeded', result: { sent: { region: 'us' } } },
    })
    expect((await post('/v1/schedules/x/trigger', { wait: '2m' })).body.errors[0].pointer).toBe('/wait')
  })

  it('recognises a repeated creation by its Idempotency-Key, when the process died before it could answer', async () => {
    const key = { 'idempotency-key': 'k' }
    await kit.belfry.schedules.put('mine', DAILY)
    const again = await post('/v1/schedules', { id: 'mine', ...DAILY }, key)
    expect([again.status, again.body.id]).toEqual([201, 'mine'])
    const other = await post('/v1/schedules', { id: 'mine', ...DAILY, payload: 1 }, { 'idempotency-key': 'l' })
    expect(other.body.code).toBe('SCHEDULE_DUPLICATE')
    expect((await post('/v1/schedules', { id: 'mine', ...DAILY })).body.code).toBe('SCHEDULE_DUPLICATE')
  })

  it('answers 201 when the schedule was created and only the answer could not be stored for repeats', async () => {
    const { records } = kit.belfry
    const put = records.put
    records.put = async (write) => {
      if (write.kind === 'idempotency' && write.ifAbsent === undefined) throw new Error('the store is gone')
      return put(write)
    }
    const made = await post('/v1/schedules', DAILY, { 'idempotency-key': 'k' })
    records.put = put
    expect(made.status).toBe(201)
    expect((await kit.belfry.schedules.list()).items).toHaveLength(1)
  })

  it('succeeds for all concurrent writers that name no version, or any', async () => {
    await put('a')
    const writes = Array.from({ length: 30 }, (_, at) => [
      ask('/v1/schedules/a', { method: 'PATCH', body: { jitter: `${at + 1}s` } }),
      put('a', { ...DAILY, payload: at }, { 'if-match': '*' }),
    ])
    const answers = await Promise.all(writes.flat())
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect((await put('b', DAILY, { 'if-match': '*' })).status).toBe(412)
  })

  it('triggers it once per Idempotency-Key, even when the first answer was lost', async () => {
    await put('x')
    const key = { 'idempotency-key': 'k' }
    const first = await post('/v1/schedules/x/trigger', {}, key)
    // Simulates a crash between the trigger and its answer.
    const { items } = await kit.belfry.records.list({ kind: 'idempotency', limit: 10 })
    for (const { id } of items) await kit.belfry.records.remove('idempotency', id)
    const again = await post('/v1/schedules/x/trigger', {}, key)
    expect([again.body.runId, again.body.outcome]).toEqual([first.body.runId, 'enqueued'])
    expect((await kit.belfry.runs.list()).items).toHaveLength(1)
  })

  it('asks to retry later while the first request with a key is in flight', async () => {
    await put('x', { ...DAILY, job: 'slow' })
    const key = { 'idempotency-key': 'k' }
    const slow = post('/v1/schedules/x/trigger', { wait: '30s' }, key)
    await kit.clock.settle()
    const early = await post('/v1/schedules/x/trigger', { wait: '30s' }, key)
    expect([early.status, early.body.code]).toEqual([409, 'IDEMPOTENCY_PENDING'])
    expect(early.headers.get('retry-after')).toBe('1')
    await kit.advance('31s')
    expect((await slow).status).toBe(202)
    expect((await post('/v1/schedules/x/trigger', { wait: '30s' }, key)).status).toBe(202)
  })

  it('repeats past ticks, once each', async () => {
    await put('x', { ...DAILY, cron: '0 * * * *' })
    await kit.advance('3h')
    const range = { from: '2026-01-01T09:00:00Z', to: '2026-01-01T11:00:00Z' }
    const first = await post('/v1/schedules/x/backfill', range)
    expect([first.status, first.body.enqueued, first.body.runs.length]).toEqual([200, 3, 3])
    expect((await post('/v1/schedules/x/backfill', range)).body).toMatchObject({ enqueued: 0, duplicates: 3 })
    expect((await post('/v1/schedules/x/backfill', { ...range, to: '2030-01-01T00:00:00Z' })).status).toBe(422)
  })

  it('explains a tick, and lists the ticks of a range', async () => {
    await put('x')
    await kit.advance('26h')
    const why = await ask('/v1/schedules/x/explain?at=2026-01-01T09:00:00Z')
    expect(why.body).toMatchObject({ status: 'ran', run: { schedule: 'x', state: 'succeeded' } })
    expect((await ask('/v1/schedules/x/explain?at=2026-01-01T09:00:01Z')).body.status).toBe('not-a-tick')
    expect((await ask('/v1/schedules/x/explain')).body).toMatchObject({ status: 'ran', at: '2026-01-02T09:00:00.000Z' })
    expect((await ask('/v1/schedules/x/explain?at=noon')).body.errors[0].pointer).toBe('at')
    const ticks = await ask('/v1/schedules/x/ticks?from=2026-01-01T00:00:00Z&to=2026-01-04T00:00:00Z&limit=2')
    expect(ticks.body).toMatchObject({
      data: [{ status: 'ran' }, { status: 'ran', at: '2026-01-02T09:00:00.000Z' }],
      next: '2026-01-03T09:00:00.000Z',
    })
    expect((await ask('/v1/schedules/y/ticks?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z')).status).toBe(404)
  })
})
