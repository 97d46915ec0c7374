import { createClient, createCluster, createSentinel } from '@redis/client'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type NodeRedis, type RedisClient, redisStream } from '../../src/sinks/redis-stream/index.js'
import { type ReceivedMessage, SinkScene, sinkContract } from '../../src/testing/sink-contract.js'
import { outageProxy } from '../servers/outage-proxy.js'
import type { OwnServer } from '../servers/postgres.js'
import { startOwnRedis, startOwnSentinel, tellRedis } from '../servers/redis.js'
import { serverUrl } from '../servers/server-url.js'
import { refused, runAnsweredInPart, scene, soon, yes } from './deliveries.js'
import { killPublisher } from './killed-publisher.js'

let server: OwnServer | undefined
const url = () => server?.url ?? ''

beforeAll(async () => {
  server = await startOwnRedis(['--appendfsync', 'always'])
})

afterAll(() => server?.stop())

/** A client that leaves out half of the entries of one command, so that the answer covers only the other half. */
class HalfAnswering implements NodeRedis {
  readonly #real: NodeRedis
  #isNext = false
  leftOut = 0

  constructor(real: NodeRedis) {
    this.#real = real
  }

  get isOpen() {
    return this.#real.isOpen
  }

  get isReady() {
    return this.#real.isReady
  }

  answerInPart() {
    this.#isNext = true
    return { leftOut: () => this.leftOut }
  }

  connect = () => this.#real.connect()
  destroy = () => this.#real.destroy()
  on = (event: 'error', listener: (error: unknown) => void) => this.#real.on(event, listener)

  /**
   * Arguments: EVALSHA sha 2 stream seen window maxLength fields field…, and for each entry its dedupe id and fields.
   */
  sendCommand(args: readonly string[]): Promise<unknown> {
    if (!this.#isNext) return this.#real.sendCommand([...args])
    this.#isNext = false
    this.leftOut += 1
    const fields = Number(args[7])
    const entries = (args.length - 8 - fields) / (fields + 1)
    return this.#real.sendCommand(args.slice(0, 8 + fields + Math.floor(entries / 2) * (fields + 1)))
  }
}

async function entriesOf(stream: string): Promise<Record<string, string>[]> {
  const entries = (await tellRedis(url(), 'XRANGE', stream, '-', '+')) as [string, string[]][]
  return entries.map(([, fields]) => {
    const pairs = Array.from({ length: fields.length / 2 }, (_, at) => [fields[2 * at], fields[2 * at + 1]])
    return Object.fromEntries(pairs)
  })
}

async function arrivedIn(stream: string): Promise<ReceivedMessage[]> {
  return (await entriesOf(stream)).map((fields) => ({
    ...JSON.parse(fields.data ?? ''),
    attempt: Number(fields['belfry-attempt']),
    token: Number(fields['belfry-token']),
  }))
}

sinkContract({
  name: 'redis-stream',
  open: async () => ({
    sink: redisStream({ url: url(), stream: 'events', overrides: { stream: ['other'], headers: ['tenant'] } }),
    received: () => arrivedIn('events'),
    down: async () => server?.crash(),
    up: async () => server?.restart(),
    elsewhere: { options: { stream: 'other', headers: { tenant: 'one' } }, arrived: () => arrivedIn('other') },
    badOptions: [{ stream: '' }, { stream: 'a}b' }, { stram: 'a' }, { headers: { id: '1' } }],
  }),
})

describe('the Redis Streams sink', () => {
  it('adds a message once until the window has passed, however often it is sent', async () => {
    const sink = redisStream({ url: url(), stream: 'once', dedupe: '300ms', headers: { team: 'shop' } })
    const message = scene.message()
    for (const attempt of [1, 2])
      expect(await sink.deliver([{ ...message, attempt }, message], soon())).toEqual([yes, yes])
    expect(await entriesOf('once')).toMatchObject([{ id: message.id, key: message.key, team: 'shop' }])
    await expect.poll(() => tellRedis(url(), 'EXISTS', '{once}:belfry-seen'), { timeout: 5_000 }).toBe(0)
    expect(await sink.deliver([message], soon())).toEqual([yes])
    await sink.close?.()
    expect(await entriesOf('once')).toHaveLength(2)
  })

  it('counts as delivered only the messages that the client answered for', async () => {
    const real = createClient({ url: url() })
    const client = new HalfAnswering(real as NodeRedis)
    const sink = redisStream({ client, stream: 'part' })
    const answerInPart = async () => client.answerInPart()
    await runAnsweredInPart({ sink, received: () => arrivedIn('part'), answerInPart })
    expect(client.leftOut).toBe(1)
    real.destroy()
  })

  it('reports an outage while too few replicas are connected', async () => {
    const sink = redisStream({ url: url(), stream: 'replicated' })
    await tellRedis(url(), 'CONFIG', 'SET', 'min-replicas-to-write', '1')
    const outcomes = await sink.deliver(scene.messages(2), soon())
    await tellRedis(url(), 'CONFIG', 'SET', 'min-replicas-to-write', '0')
    const outage = { delivered: false, unreachable: true, error: { message: /NOREPLICAS/ } }
    expect(outcomes).toMatchObject([outage, outage])
    expect(await sink.deliver(scene.messages(2), soon())).toEqual([yes, yes])
    await sink.close?.()
  })

  it('limits the length of a stream', async () => {
    const sink = redisStream({ url: url(), stream: 'short', maxLength: 100, dedupe: 0 })
    for (let calls = 0; calls < 5; calls += 1) await sink.deliver(scene.messages(120), soon())
    await sink.close?.()
    const length = Number(await tellRedis(url(), 'XLEN', 'short'))
    expect(length).toBeGreaterThanOrEqual(100)
    expect(length).toBeLessThan(300)
    expect(await tellRedis(url(), 'EXISTS', '{short}:belfry-seen')).toBe(0)
  })

  it('permanently fails when the key is not a stream, and does not remember the message as seen', async () => {
    await tellRedis(url(), 'SET', 'text', 'no stream')
    const sink = redisStream({ url: url(), stream: 'text', overrides: { stream: ['fine'] } })
    const message = scene.message()
    expect(await sink.deliver([message, scene.message({ options: { stream: 'fine' } })], soon())).toMatchObject([
      refused,
      yes,
    ])
    await tellRedis(url(), 'DEL', 'text')
    expect(await sink.deliver([message], soon())).toEqual([yes])
    await sink.close?.()
    expect(await entriesOf('text')).toHaveLength(1)
  })

  it('sends its script again to a server that has lost it', async () => {
    const sink = redisStream({ url: url(), stream: 'flushed' })
    await sink.deliver(scene.messages(1), soon())
    await tellRedis(url(), 'SCRIPT', 'FLUSH')
    expect(await sink.deliver(scene.messages(1), soon())).toEqual([yes])
    await sink.close?.()
  })

  it('uses the caller’s client, of either kind, and leaves it connected', async () => {
    const ours = createClient({ url: url() })
    const theirs = new Redis(url(), { lazyConnect: true })
    for (const client of [ours, theirs] as RedisClient[]) {
      const sink = redisStream({ client, stream: 'brought' })
      expect(await sink.deliver(scene.messages(2), soon())).toEqual([yes, yes])
      await sink.close?.()
    }
    expect(await ours.ping()).toBe('PONG')
    expect(await theirs.ping()).toBe('PONG')
    ours.destroy()
    theirs.disconnect()
    expect(await entriesOf('brought')).toHaveLength(4)
  })

  it('works on a cluster, with the caller’s clients of both kinds and with its own', async () => {
    const nodes = (await serverUrl('redis-cluster')).split(',')
    const ours = createCluster({ rootNodes: nodes.map((each) => ({ url: each })) })
    const theirs = new Cluster(nodes)
    const overrides = { stream: ['a', 'b', 'c', 'd'] }
    const own = redisStream({ nodes, stream: 'orders', overrides })
    const sinks = [
      own,
      ...[ours, theirs].map((client) => redisStream({ client: client as RedisClient, stream: 'or{der}s', overrides })),
    ]
    for (const sink of sinks) {
      const elsewhere = ['a', 'b', 'c', 'd'].map((stream) => scene.message({ options: { stream } }))
      const messages = [...scene.messages(3), ...elsewhere]
      expect(await sink.deliver(messages, soon())).toEqual(messages.map(() => yes))
      expect(await sink.deliver(messages, soon())).toEqual(messages.map(() => yes))
    }
    await own.close?.()
    const lengths = await Promise.all(['orders', 'or{der}s', 'a', 'd'].map((stream) => theirs.xlen(stream)))
    expect(lengths).toEqual([3, 6, 3, 3])
    await theirs.del('orders', '{orders}:belfry-seen')
    ours.destroy()
    theirs.disconnect()
  })

  it('follows the master that Sentinel names, with its own clients and with one of createSentinel()', async () => {
    const primary = await startOwnRedis(['--repl-diskless-sync-delay', '0'])
    const { port } = new URL(primary.url)
    const replica = await startOwnRedis(['--replicaof', '127.0.0.1', port])
    const follows = () => tellRedis(replica.url, 'INFO', 'replication').then(String)
    await expect.poll(follows, { timeout: 20_000 }).toMatch(/master_link_status:up/)
    const sentinel = await startOwnSentinel('orders', primary.url)
    const knows = () => tellRedis(sentinel.url, 'SENTINEL', 'REPLICAS', 'orders').then(String)
    await expect.poll(knows, { timeout: 20_000 }).toMatch(/127\.0\.0\.1/)
    const closedProxy = await outageProxy(() => 0)
    await closedProxy.cut()
    const sentinels = [`redis://127.0.0.1:${closedProxy.port}`, sentinel.url]
    const own = redisStream({ url: 'redis://orders', sentinels, stream: 'own' })
    const sentinelRootNodes = [{ host: '127.0.0.1', port: Number(new URL(sentinel.url).port) }]
    const brought = createSentinel({ name: 'orders', sentinelRootNodes })
    const theirs = redisStream({ client: brought as RedisClient, stream: 'brought' })
    const [before, after] = [scene.messages(5), scene.messages(5)]
    try {
      for (const sink of [own, theirs]) expect(await sink.deliver(before, soon())).toEqual(before.map(() => yes))
      const copied = () => Promise.all(['own', 'brought'].map((stream) => tellRedis(replica.url, 'XLEN', stream)))
      await expect.poll(copied, { timeout: 10_000 }).toEqual([5, 5])
      await primary.crash()
      for (const sink of [own, theirs]) await new SinkScene({ ...scene.opened, sink }).deliverAll(after)
      for (const stream of ['own', 'brought']) {
        const entries = (await tellRedis(replica.url, 'XRANGE', stream, '-', '+')) as [string, string[]][]
        expect(entries.map(([, fields]) => fields[1])).toEqual([...before, ...after].map(({ id }) => id))
      }
    } finally {
      await own.close?.()
      brought.destroy()
      await Promise.all([sentinel, primary, replica].map((each) => each.stop()))
    }
  }, 60_000)

  it('reports which Sentinels failed, and why', async () => {
    const closedProxy = await outageProxy(() => 0)
    await closedProxy.cut()
    const sentinel = await startOwnSentinel('orders', url())
    const sentinels = [`redis://127.0.0.1:${closedProxy.port}`, sentinel.url]
    const sink = redisStream({ url: 'redis://nobody', sentinels, stream: 'a' })
    const outcomes = await sink.deliver(scene.messages(1), soon())
    await sink.close?.()
    await sentinel.stop()
    const message = expect.stringMatching(/sentinel 127.0.0.1:\d+: .*; sentinel .*: it knows no master "nobody"/)
    expect(outcomes).toMatchObject([{ delivered: false, unreachable: true, error: { message } }])
  })

  it('detects a hanging server within seconds, and continues over a new connection', async () => {
    const proxy = await outageProxy(() => Number(new URL(url()).port))
    const sink = redisStream({ url: `redis://127.0.0.1:${proxy.port}`, stream: 'hung' })
    expect(await sink.deliver(scene.messages(1), soon())).toEqual([yes])
    proxy.swallow()
    const outcomes = await sink.deliver(scene.messages(1), AbortSignal.timeout(30_000))
    expect(outcomes).toMatchObject([
      { delivered: false, unreachable: true, error: { message: /has not answered within 5 s/ } },
    ])
    expect(await sink.deliver(scene.messages(1), soon())).toEqual([yes])
    await sink.close?.()
    await proxy.cut()
  }, 40_000)

  it('refuses invalid options', () => {
    const redis = 'redis://localhost'
    for (const options of [
      { url: redis },
      { stream: 'a' },
      { stream: 'a', url: redis, nodes: [redis] },
      { stream: 'a', nodes: [] },
      { stream: 'a', sentinels: [redis] },
      { stream: 'a', url: redis, sentinels: [] },
    ]) {
      expect(() => redisStream(options as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    }
    expect(() => redisStream({ stream: 'a', url: redis, maxLength: -1 })).toThrow(/maxLength is "-1"/)
  })

  it('loses nothing when the publishing process is killed in the middle of a batch', async () => {
    const options = { url: url(), stream: 'killed' }
    const arrived = () => arrivedIn('killed')
    await killPublisher({ sink: 'redis-stream/index.js', make: 'redisStream', options, arrived })
  }, 60_000)
})
