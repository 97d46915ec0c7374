/** On real brokers, a schedule can set for its sink (`toOptions`) only what the sink’s owner has allowed. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import type { Json } from '../../src/core/checks/json.js'
import type { Sink } from '../../src/core/sink.js'
import { kafka } from '../../src/sinks/kafka/index.js'
import { nats } from '../../src/sinks/nats/index.js'
import { rabbitmq } from '../../src/sinks/rabbitmq/index.js'
import { redisStream } from '../../src/sinks/redis-stream/index.js'
import { webhook } from '../../src/sinks/webhook/index.js'
import { redis as redisStore } from '../../src/stores/redis/index.js'
import { startOwnNats } from '../servers/nats.js'
import type { OwnServer } from '../servers/postgres.js'
import { startOwnRedis, tellRedis } from '../servers/redis.js'
import { scene, soon, yes } from './deliveries.js'

let broker: OwnServer | undefined
let redis: OwnServer | undefined

beforeAll(async () => {
  ;[broker, redis] = await Promise.all([startOwnNats({}), startOwnRedis([])])
})

afterAll(async () => {
  await Promise.all([broker?.stop(), redis?.stop()])
})

const refusal = { delivered: false, retryable: false, error: { code: 'OVERRIDE_REFUSED' } }

async function expectRefused(sink: Sink, options: Json): Promise<void> {
  expect(() => sink.check?.(options), JSON.stringify(options)).toThrow(
    expect.objectContaining({ code: expect.stringMatching(/^(OVERRIDE_REFUSED|OPTION_INVALID|ADDRESS_REFUSED)$/) }),
  )
  const [outcome] = await sink.deliver([scene.message({ options })], soon())
  expect(outcome, JSON.stringify(options)).toMatchObject({ delivered: false, retryable: false })
}

describe('toOptions', () => {
  it('cannot purge a stream of NATS, whatever the owner has allowed', async () => {
    const connection = await connect({ servers: broker?.url ?? '' })
    const manager = await jetstreamManager(connection)
    await manager.streams.add({ name: 'BILLING', subjects: ['billing.>'] })
    await manager.streams.add({ name: 'EVENTS', subjects: ['events.>'] })
    connection.publish('billing.one', '1')
    await connection.flush()
    for (const overrides of [undefined, { subject: true }, { subject: ['*'] }]) {
      const sink = nats({ subject: 'events.belfry', servers: broker?.url ?? '', ...(overrides ? { overrides } : {}) })
      for (const subject of ['$JS.API.STREAM.PURGE.BILLING', '$SYS.REQ.SERVER.PING', '_INBOX.a.b', 'billing.*', '>']) {
        await expectRefused(sink, { subject })
      }
      await sink.close?.()
    }
    expect((await manager.streams.info('BILLING')).state.messages).toBe(1)
    await connection.close()
  })

  it('cannot write keys of the store, whatever the owner has allowed', async () => {
    const url = redis?.url ?? ''
    for (const overrides of [undefined, { stream: true }, { stream: ['*'] }]) {
      const sink = redisStream({ url, stream: 'events', ...(overrides ? { overrides } : {}) })
      sink.reserve?.('shop/ticks:')
      for (const stream of [
        'belfry:{0}:schedule-due',
        'shop/ticks:{0}:runs',
        'app:belfry:{0}:runs',
        'a{b}:belfry-seen',
      ]) {
        await expectRefused(sink, { stream })
      }
      await sink.close?.()
    }
    expect(await tellRedis(url, 'DBSIZE')).toBe(0)
  })

  it('cannot write keys of the store, whose prefix the sink learns from its Belfry', async () => {
    const url = redis?.url ?? ''
    const sink = redisStream({ url, stream: 'events', overrides: { stream: true } })
    const belfry = createBelfry({ store: redisStore({ url, prefix: 'shop/' }), sinks: { sink } })
    const put = (stream: string) => belfry.schedules.put('a', { every: '1h', to: 'sink', toOptions: { stream } })
    await expect(put('shop/{0}:schedule-due')).rejects.toMatchObject({
      code: 'OVERRIDE_REFUSED',
      path: ['toOptions', 'stream'],
      message: /schedule "a": toOptions: .*a key of Belfry's store; use another stream/,
    })
    await put('shop/events')
    await belfry.stop()
  })

  it('sets nothing by default, and the refusal says what to do', async () => {
    const headers = { 'x-tenant': '1' }
    const sinks: [Sink, Json[]][] = [
      [nats({ subject: 'a', servers: 'nats://127.0.0.1:1' }), [{ subject: 'b' }, { headers }]],
      [kafka({ topic: 'a', brokers: ['127.0.0.1:1'] }), [{ topic: 'b' }, { headers }]],
      [redisStream({ stream: 'a', url: 'redis://127.0.0.1:1' }), [{ stream: 'b' }, { headers }]],
      [rabbitmq({ queue: 'a', url: 'amqp://127.0.0.1:1' }), [{ queue: 'b' }, { exchange: 'b' }, { routingKey: 'b' }]],
      [webhook({ url: 'http://127.0.0.1:1/', allow: ['127.0.0.1'] }), [{ url: 'http://127.0.0.1:1/' }, { headers }]],
      [webhook({ allow: ['127.0.0.1'] }), [{ url: 'http://127.0.0.1:1/', headers }]],
    ]
    for (const [sink, all] of sinks) {
      for (const options of all) {
        const advice =
          /schedules may not set (\w+): remove it from toOptions, or have the sink's owner allow it: overrides/
        expect(() => sink.check?.(options)).toThrow(
          expect.objectContaining({ code: 'OVERRIDE_REFUSED', message: expect.stringMatching(advice) }),
        )
      }
      await sink.close?.()
    }
    webhook({ allow: ['127.0.0.1'] }).check?.({ url: 'http://127.0.0.1:1/in' })
  })

  it('fails for good at delivery when the owner has narrowed the list since', async () => {
    const sink = nats({
      subject: 'events.a',
      servers: broker?.url ?? '',
      overrides: { subject: ['events.a', 'events.b*'] },
    })
    expect(await sink.deliver([scene.message({ options: { subject: 'events.b.c' } })], soon())).toEqual([yes])
    const outcomes = await sink.deliver([scene.message({ options: { subject: 'events.c' } }), scene.message()], soon())
    expect(outcomes).toMatchObject([
      { ...refusal, error: { message: /"events.c"; schedules may set "events.a", "events.b\*"/, path: ['subject'] } },
      yes,
    ])
    await sink.close?.()
  })

  it('sets headers by name, never those that are reserved, and the sink’s own only where listed in full', async () => {
    const sink = redisStream({
      url: redis?.url ?? '',
      stream: 'headed',
      headers: { 'x-team': 'shop', 'x-region': 'eu' },
      overrides: { headers: ['X-*', 'x-region'] },
    })
    const headers = { 'X-Region': 'us', 'x-new': '1' }
    expect(await sink.deliver([scene.message({ options: { headers } })], soon())).toEqual([yes])
    const [[, fields]] = (await tellRedis(redis?.url ?? '', 'XRANGE', 'headed', '-', '+')) as [[string, string[]]]
    expect(fields.slice(8)).toEqual(['x-team', 'shop', 'X-Region', 'us', 'x-new', '1', ...fields.slice(14)])
    const reserved = [
      'Authorization',
      'ce-id',
      'CE_ID',
      'content_type',
      'Content-Type',
      'webhook-id',
      'Nats-Msg-Id',
      'id',
      'DATA',
      'cookie',
    ]
    for (const name of [...reserved, 'x-team', 'X-TEAM', 'tenant', '__proto__']) {
      await expectRefused(sink, JSON.parse(`{ "headers": { "${name}": "x" } }`))
    }
    await expectRefused(sink, { headers: { 'x-a': '1', 'X-A': '2' } })
    await expectRefused(sink, { headers: { 'x-a': ['1'] } })
    await expectRefused(sink, { headers: ['x-a'] })
    await sink.close?.()
  })

  it('cannot make RabbitMQ send copies, delay or answer others’ requests', () => {
    const sink = rabbitmq({
      exchange: 'a',
      url: 'amqp://127.0.0.1:1',
      overrides: { exchange: true, queue: true, headers: true },
    })
    const name = 'amq.rabbitmq.reply-to.g1'
    for (const options of [{ exchange: 'amq.rabbitmq.trace' }, { queue: name }, { queue: 'AMQ.gen-x' }]) {
      expect(() => sink.check?.(options)).toThrow(/which no schedule may set/)
    }
    for (const header of ['CC', 'BCC', 'x-death', 'x-delay', 'X-Stream-Filter', 'x_opt_a']) {
      expect(() => sink.check?.({ headers: { [header]: 'a' } })).toThrow(/is reserved/)
    }
    // Without a routing key of its own, the exchange routes by the key.
    expect(() => sink.check?.({}, 'orders.vip')).toThrow(/schedules may not set key/)
  })

  it('chooses a key only where the key holds up no others', () => {
    const options = { topic: 'a', brokers: ['127.0.0.1:1'] }
    kafka(options).check?.({}, 'mine')
    expect(() => kafka({ ...options, ordered: true }).check?.({}, 'theirs')).toThrow(/schedules may not set key/)
    kafka({ ...options, ordered: true, overrides: { key: ['tenant-a/*'] } }).check?.({}, 'tenant-a/1')
    expect(() => kafka({ ...options, overrides: { key: false } }).check?.({}, 'mine')).toThrow(/may not set key/)
  })

  it('names URLs by origin and path, in whatever spelling', () => {
    const overrides = { url: ['https://shop.test/in', 'https://*.eu.test', 'http://other.test:8080/a/'] }
    const sink = webhook({ overrides })
    const good = [
      'https://shop.test/in',
      'https://SHOP.test/in/x?y=%2e',
      'https://shop.test/x/../in/',
      'https://a.b.eu.test/c%20d',
    ]
    for (const url of [...good, 'http://other.test:8080/a/b']) sink.check?.({ url })
    const bad = [
      ...[
        'http://shop.test/in',
        'https://shop.test/inside',
        'https://shop.test/in/../x',
        'https://shop.test/in/%2e%2e/x',
      ],
      ...[
        'https://shop.test/in/%252e%252e/x',
        'https://shop.test/in/..;/x',
        'https://shop.test/in/..%2fx',
        'https://shop.test/in\\..\\x',
      ],
      ...[
        'https://shop.test.evil.test/in',
        'https://shop.test./in',
        'https://shop.test:444/in',
        'https://eu.test/',
        'https://xeu.test/',
      ],
      ...[
        'https://x.eu.test:8443/',
        'https://shop.test@evil.test/in',
        'http://other.test:8080/a',
        'https://evil.test/?https://shop.test/in',
      ],
    ]
    for (const url of bad) expect(() => sink.check?.({ url }), url).toThrow(/schedules may set|user name/)
  })

  it.each([
    [{ subject: 'events.a' }, /must be a list/],
    [{ subject: [''] }, /must be a list/],
    [{ subject: [7] }, /must be a list/],
    [{ subject: ['events.>'] }, /a subject to publish to/],
    [{ subject: ['$JS.*'] }, /controls the server/],
    [{ subjects: true }, /did you mean "subject"/],
    ['subject', /must be an object/],
  ])('is not allowed by the overrides %j, which the owner must correct', (overrides, reason) => {
    expect(() => nats({ subject: 'a', servers: 'nats://127.0.0.1:1', overrides: overrides as never })).toThrow(reason)
  })
})
