/** What the store refuses, each with a message that says what to change. */
import { createCluster } from '@redis/client'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { storeError } from '../../src/stores/redis/connection/errors.js'
import {
  type IoRedis,
  type NodeRedisCluster,
  type RedisOptions,
  redis,
  redisStore,
} from '../../src/stores/redis/index.js'
import { Scene } from '../../src/testing/contract/scene.js'
import { fakeRedis } from '../servers/fake-redis.js'
import type { OwnServer } from '../servers/postgres.js'
import { startOwnRedis, tellRedis } from '../servers/redis.js'
import { serverUrl } from '../servers/server-url.js'

async function refused(options: RedisOptions): Promise<unknown> {
  const store = redis({ timeoutMs: 2_000, ...options })
  try {
    await store.open()
    return 'opened'
  } catch (error) {
    return error
  } finally {
    await store.close()
  }
}

describe('options of redis()', () => {
  const url = 'redis://127.0.0.1'

  it.each([
    ['none of client, url and nodes', {}, /needs one of `client`, `url` and `nodes`/],
    ['several of them', { url, nodes: [url] }, /needs one of/],
    ['something else for a client', { client: {} as never }, /client of @redis\/client or of ioredis/],
    ['a name that is none', { url, perfix: 'a:' } as RedisOptions, /"perfix" is not an option; did you mean "prefix"/],
    ['no URL', { url: 'nonsense' }, /"nonsense" in `url` is no URL of a Redis server: write redis:\/\/host:6379/],
    ['a URL of something else', { url: 'http://user:secret@a' }, /http: in `url` is no URL of a Redis server/],
    ['a node that is no URL', { nodes: [url, 'a:6379'] }, /in `nodes` is no URL of a Redis server/],
    ['no nodes', { nodes: [] }, /`nodes` is empty/],
    ['a prefix with a hash tag', { url, prefix: '{x}' }, /prefix "{x}" is not usable/],
    ['no shards', { url, shards: 0 }, /shards is 0; it must be a whole number from 1 to 256/],
    ['half a replica', { url, waitReplicas: 0.5 }, /waitReplicas is 0.5; it must be a whole number/],
    ['no time at all', { url, timeoutMs: 0 }, /timeoutMs is 0; it must be a number of milliseconds/],
  ])('are refused: %s', (_, options, message) => {
    expect(() => redis(options)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID', message: expect.any(String) }),
    )
    expect(() => redis(options)).toThrow(message)
  })

  it('never show a password', () => {
    expect(() => redis({ url: 'http://user:secret@a' })).not.toThrow(/secret/)
  })

  it('do not offer waitReplicas on a cluster of ioredis, which does not expose its connections', () => {
    const client = new Cluster([url], { lazyConnect: true }) as unknown as IoRedis
    const open = () => redis({ client, waitReplicas: 1 })
    expect(open).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }))
    expect(open).toThrow(/use @redis\/client/)
  })

  it('must have the existing number of shards', async () => {
    const prefix = `r${process.pid}.${Date.now().toString(36)}:`
    const open = async (shards?: number) => {
      const store = redisStore(
        { url: await serverUrl('redis'), prefix, ...(shards === undefined ? {} : { shards }) },
        {},
      )
      await store.open().finally(() => store.close())
    }
    await open(2)
    await open()
    await expect(open(3)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(
        /made with 2 shards, and cannot be opened with 3: leave `shards` out, or use another/,
      ),
    })
  })
})

describe('servers', () => {
  let own: OwnServer

  beforeAll(async () => {
    own = await startOwnRedis([], { password: 'right' })
    const limited = ['on', '>limited', '~*', '&*', '+@all', '-evalsha', '-eval']
    await tellRedis(own.url, 'ACL', 'SETUSER', 'limited', ...limited)
    const deaf = ['on', '>deaf', '~*', 'resetchannels', '+@all']
    await tellRedis(own.url, 'ACL', 'SETUSER', 'deaf', ...deaf)
  })

  afterAll(() => own.stop())

  const withUser = (user: string) => Object.assign(new URL(own.url), { username: user, password: user }).href

  it('with an eviction policy are refused', async () => {
    const { url } = own
    for (const policy of ['allkeys-lru', 'volatile-ttl']) {
      await tellRedis(url, 'CONFIG', 'SET', 'maxmemory-policy', policy)
      expect(await refused({ url })).toMatchObject({
        code: 'STORE_INVALID',
        message: expect.stringContaining(`maxmemory-policy ${policy}): set it to noeviction`),
      })
    }
    await tellRedis(url, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    expect(await refused({ url })).toBe('opened')
  })

  it('that are replicas are refused', async () => {
    await tellRedis(own.url, 'REPLICAOF', '127.0.0.1', '1')
    expect(await refused({ url: own.url })).toMatchObject({
      code: 'STORE_READ_ONLY',
      message: expect.stringMatching(/is a replica: connect to its primary/),
    })
    await tellRedis(own.url, 'REPLICAOF', 'NO', 'ONE')
  })

  it('that are too old are refused', async () => {
    for (const version of ['5.0.14', '6.0.20', '6.1.240']) {
      const fake = await fakeRedis(`# Server\r\nredis_version:${version}\r\nrole:master\r\n`)
      expect([version, await refused({ url: fake.url })]).toMatchObject([
        version,
        { code: 'STORE_INVALID', message: expect.stringContaining(`is version ${version}: Belfry needs 6.2 or newer`) },
      ])
      await fake.close()
    }
  })

  it('that do not exist are reported as unreachable, in time, by both clients', async () => {
    const gone = await fakeRedis('')
    const { url } = gone
    await gone.close()
    const unreachable = {
      code: 'STORE_UNREACHABLE',
      message: expect.stringMatching(/check the server, the network and the URL/),
    }
    expect(await refused({ url, timeoutMs: 300 })).toMatchObject(unreachable)
    expect(await refused({ nodes: [url], timeoutMs: 300 })).toMatchObject(unreachable)
    const client = new Redis(url, { lazyConnect: true })
    expect(await refused({ client: client as unknown as IoRedis, timeoutMs: 300 })).toMatchObject(unreachable)
    client.disconnect()
  })

  it('that were unreachable can be opened once they are up', async () => {
    const late = await startOwnRedis()
    await late.crash()
    const store = redis({ url: late.url, timeoutMs: 300 })
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
    await late.restart()
    await store.open()
    expect(await store.now()).toBeGreaterThan(0)
    await store.close()
    await late.stop()
  })

  it('that refuse the password are reported as such at once', async () => {
    const wrong = { code: 'STORE_UNREACHABLE', message: expect.stringMatching(/check the user and the password/) }
    const began = performance.now()
    expect(await refused({ url: withUser('wrong'), timeoutMs: 20_000 })).toMatchObject(wrong)
    expect(performance.now() - began).toBeLessThan(10_000)
    const { host } = new URL(own.url)
    expect(await refused({ url: `redis://${host}` })).toMatchObject(wrong)
    const client = new Redis(withUser('wrong'), { lazyConnect: true })
    expect(await refused({ client: client as unknown as IoRedis })).toMatchObject(wrong)
    client.disconnect()
  })

  it('that forbid scripts or channels: the error names the permission', async () => {
    for (const user of ['limited', 'deaf']) {
      expect(await refused({ url: withUser(user) })).toMatchObject({
        code: 'STORE_INVALID',
        message: expect.stringMatching(/forbids this user a command: allow it to run scripts, on keys and channels/),
      })
    }
  })
})

describe('servers without free memory', () => {
  it('still accept pruning, which frees memory', async () => {
    const full = await startOwnRedis()
    const store = redis({ url: full.url })
    await store.open()
    const scene = new Scene({ store, elapse: async () => {} })
    await scene.join()
    await scene.enqueue()
    await scene.settle(await scene.claimOne())
    for (let at = 0; at < 250; at += 1) await scene.acquire(`lock ${at}`, 'a holder')
    await tellRedis(full.url, 'CONFIG', 'SET', 'maxmemory', '1')
    await expect(scene.enqueue()).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect(await store.runs.prune({ maxAgeMs: 1e9, maxRuns: 0, leaseAgeMs: 1e9, limit: 1_000 })).toBe(1)
    await store.close()
    await full.stop()
  })

  it('are recognised by the error message before Redis 7, too', () => {
    const said = (words: string) =>
      new Error(`ERR Error running script (call to f_0a9a51): @user_script:41: @user_script: 41: -${words}`)
    expect(storeError(said("OOM command not allowed when used memory > 'maxmemory'."), 'belfry:')).toMatchObject({
      code: 'STORE_FULL',
    })
    expect(storeError(said("READONLY You can't write against a read only replica."), 'belfry:')).toMatchObject({
      code: 'STORE_UNREACHABLE',
    })
  })
})

describe('a single server and a cluster', () => {
  it('are distinguished: a cluster node used as a single server is refused', async () => {
    const nodes = (await serverUrl('redis-cluster')).split(',')
    for (const url of nodes.slice(0, 3)) {
      expect(await refused({ url })).toMatchObject({
        code: 'STORE_INVALID',
        message: expect.stringMatching(/is a node of a cluster: give `nodes`, or a cluster client/),
      })
    }
  })

  it('are distinguished: a single server used as a cluster is refused', async () => {
    const url = await serverUrl('redis')
    const noCluster = { code: 'STORE_INVALID', message: expect.stringMatching(/is not a cluster: give its `url`/) }
    expect(await refused({ nodes: [url] })).toMatchObject(noCluster)
    const brought = createCluster({ rootNodes: [{ url }] }) as unknown as NodeRedisCluster
    expect(await refused({ client: brought })).toMatchObject(noCluster)
    const other = new Cluster([url], { lazyConnect: true, clusterRetryStrategy: () => null })
    expect(await refused({ client: other as unknown as IoRedis })).toMatchObject(noCluster)
    other.disconnect()
  })
})
