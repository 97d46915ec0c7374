import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Caller } from '../../src/server/index.js'
import { kafka } from '../../src/sinks/kafka/index.js'
import { createTestBelfry, type TestBelfry } from '../../src/testing/index.js'
import { accept, each, ScriptedSink } from '../sinks/scripted-sink.js'
import { type CheckedServer, checkedServer } from './checked-server.js'

let kit: TestBelfry
let server: CheckedServer
let caller: Caller
let orders: ScriptedSink

beforeEach(async () => {
  orders = new ScriptedSink()
  orders.script = each(() => {
    const error = Object.assign(new Error('shop.example answered with 500'), { excerpt: 'db password is hunter2' })
    return { delivered: false, error, retryable: false }
  })
  const topics = kafka({ topic: 'events', brokers: ['127.0.0.1:1'], overrides: { topic: ['events.*'] } })
  kit = createTestBelfry({ sinks: { orders, topics } })
  await kit.belfry.start()
  caller = { name: 'test', role: 'admin' }
  server = await checkedServer(kit.belfry, { authorise: async () => caller })
})

afterEach(async () => {
  await server.close()
  await kit.belfry.stop()
})

const put = (id: string, body: unknown) => server.ask(`/v1/schedules/${id}`, { method: 'PUT', body })

describe('POST /v1/sinks/{name}/runs', () => {
  const send = (path: string, body: unknown, headers = {}) => server.ask(path, { method: 'POST', body, headers })

  it('delivers an event, once for an Idempotency-Key', async () => {
    orders.script = accept
    const key = { 'idempotency-key': 'order-7' }
    const first = await send('/v1/sinks/orders/runs', { payload: { id: 7 }, toOptions: { key: 'k' } }, key)
    expect([first.status, first.body]).toMatchObject([
      202,
      { outcome: 'enqueued', run: { to: 'orders', toOptions: { key: 'k' } } },
    ])
    const again = await send('/v1/sinks/orders/runs', { payload: { id: 7 }, toOptions: { key: 'k' } }, key)
    expect(again.body.runId).toBe(first.body.runId)
    await kit.advance('1s')
    expect(orders.delivered.map(({ payload }) => payload)).toEqual([{ id: 7 }])
    expect((await send('/v1/sinks/nobody/runs', {})).body).toMatchObject({ code: 'SINK_UNKNOWN' })
    expect((await send('/v1/sinks/orders/runs', { topic: 'x' })).status).toBe(422)
  })

  it('is open only to callers who may use the sink', async () => {
    caller = { name: 'eu', role: 'operator', prefix: 'eu/' }
    expect(await send('/v1/sinks/orders/runs', {})).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } })
    caller = { name: 'viewer', role: 'viewer' }
    expect((await send('/v1/sinks/orders/runs', {})).status).toBe(403)
  })
})

describe('dead letters', () => {
  it('are listed by sink and state, and retried in bulk', async () => {
    for (const id of ['a', 'b', 'c']) await put(id, { at: '2026-01-01T00:00:01Z', to: 'orders', payload: { id } })
    await kit.advance('2s')
    const dead = await server.ask('/v1/runs?to=orders&state=failed')
    expect(dead.body.data.map(({ schedule, to }: { schedule: string; to: string }) => [schedule, to])).toEqual([
      ['c', 'orders'],
      ['b', 'orders'],
      ['a', 'orders'],
    ])
    orders.script = accept
    const body = { to: 'orders', state: ['failed'] }
    const retried = await server.ask('/v1/runs:retry', { method: 'POST', body })
    expect([retried.status, retried.body.changed.length]).toEqual([200, 3])
    await kit.advance('1s')
    const delivered = orders.delivered.map(({ payload }) => (payload as { id: string }).id)
    expect(delivered.toSorted()).toEqual(['a', 'b', 'c'])
    expect((await server.ask('/v1/runs?to=orders&state=failed')).body.data).toEqual([])
  })

  it('show the receiver’s answer to operators, and not to viewers', async () => {
    await put('a', { at: '2026-01-01T00:00:01Z', to: 'orders' })
    await kit.advance('2s')
    const [{ id }] = (await server.ask('/v1/runs?to=orders')).body.data
    const places = ['/v1/runs?to=orders', `/v1/runs/${id}`, '/v1/schedules/a/explain?at=2026-01-01T00:00:01Z']
    for (const place of places) {
      caller = { name: 'test', role: 'operator' }
      expect(JSON.stringify((await server.ask(place)).body)).toContain('hunter2')
      caller = { name: 'test', role: 'viewer' }
      const seen = JSON.stringify((await server.ask(place)).body)
      expect(seen).toContain('answered with 500')
      expect(seen).not.toContain('hunter2')
    }
  })
})

describe('a schedule that sets what the sink’s owner has not allowed', () => {
  it('is refused with a pointer, what is allowed, and what to do', async () => {
    const toOptions = { topic: 'billing' }
    const { status, body } = await put('a', { every: '1h', to: 'topics', toOptions })
    expect([status, body.code]).toEqual([422, 'OVERRIDE_REFUSED'])
    expect(body.errors).toEqual([{ pointer: '/toOptions/topic', message: body.detail, code: 'OVERRIDE_REFUSED' }])
    expect(body.detail).toBe(
      'schedule "a": toOptions: a Kafka sink: topic is "billing"; schedules may set "events.*": remove it from toOptions, or have the sink\'s owner allow it: overrides: { topic: ["billing"] }',
    )
    const schedules = { 'a/b': { every: '1h', to: 'topics', toOptions: { headers: { 'x-a': '1' } } } }
    const applied = await server.ask('/v1/schedules:apply', { method: 'POST', body: { schedules } })
    expect(applied.body.errors).toMatchObject([{ pointer: '/schedules/a~1b/toOptions/headers/x-a' }])
    expect((await put('a', { every: '1h', to: 'topics', toOptions: { topic: 'events.a' } })).status).toBe(201)
  })
})

describe('a schedule for an unknown sink', () => {
  it('is refused with its reason', async () => {
    const { status, body } = await put('a', { every: '1h', to: 'order' })
    expect([status, body.code]).toEqual([422, 'SINK_UNKNOWN'])
    expect(body.detail).toBe('schedule "a": there is no sink "order"; there are orders, topics')
  })
})
