import { expect, it } from 'vitest'
import { createBelfry, silentLogger } from '../../src/index.js'
import { type NodeRedisCluster, redisStore } from '../../src/stores/redis/index.js'
import { testCluster } from '../servers/test-cluster.js'
import { Traffic } from '../servers/traffic.js'
import { checkedServer } from './checked-server.js'

const SHARDS = 6
const NOW = Date.UTC(2026, 0, 1)

/** A cluster client that answers a given number of commands and then none. */
class Breaking {
  left = Number.POSITIVE_INFINITY
  sent = 0

  over(cluster: NodeRedisCluster): NodeRedisCluster {
    const sendCommand: NodeRedisCluster['sendCommand'] = (key, isReadonly, args) => {
      this.left -= 1
      this.sent += 1
      return this.left < 0 ? Promise.reject(connectionLost()) : cluster.sendCommand(key, isReadonly, args)
    }
    return Object.create(cluster, { sendCommand: { value: sendCommand } }) as NodeRedisCluster
  }
}

function connectionLost(): Error {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
}

it('on Redis Cluster, repeating an interrupted apply completes it, wherever it was interrupted', {
  timeout: 60_000,
}, async () => {
  const cluster = await testCluster()
  const breaking = new Breaking()
  const client = breaking.over(await cluster.client({ now: () => NOW }, new Traffic()))
  const store = redisStore({ client, prefix: cluster.prefix, shards: SHARDS }, { handTurned: true })
  const belfry = createBelfry({ store, roles: [], logger: silentLogger })
  await belfry.start()
  const server = await checkedServer(belfry, { audit: false, logger: silentLogger })
  const apply = (schedules: Record<string, unknown>) =>
    server.ask('/v1/schedules:apply', { method: 'POST', body: { schedules, prune: true, prefix: '' } })
  const set = (round: number) =>
    Object.fromEntries(
      Array.from({ length: 30 }, (_, at) => [`s${round + at}`, { every: `${round + 1}h`, job: 'x', payload: at }]),
    )
  const there = async () => {
    const { items } = await belfry.schedules.list({ limit: 100 })
    return Object.fromEntries(items.map(({ id, definition }) => [id, definition.payload]))
  }
  const asWanted = (wanted: object) => Object.fromEntries(Object.keys(wanted).map((id, at) => [id, at]))
  expect((await apply(set(0))).status).toBe(200)
  const sentBefore = breaking.sent
  expect((await apply(set(1))).status).toBe(200)
  const all = breaking.sent - sentBefore
  let halfway = 0
  // The last commands of an apply write, shard by shard. Each round interrupts another of them.
  for (let round = 2; round < 2 + 2 * SHARDS; round += 2) {
    const wanted = set(round)
    const before = JSON.stringify(await there())
    breaking.left = all - round
    const cut = await apply(wanted)
    breaking.left = Number.POSITIVE_INFINITY
    if (cut.status !== 200) expect([cut.status, cut.body.code]).toEqual([503, 'STORE_UNREACHABLE'])
    const left = JSON.stringify(await there())
    if (left !== before && left !== JSON.stringify(asWanted(wanted))) halfway += 1
    expect((await apply(wanted)).status).toBe(200)
    expect(await there()).toEqual(asWanted(wanted))
    expect((await apply(wanted)).body).toMatchObject({ changes: [], unchanged: 30 })
  }
  expect(halfway).toBeGreaterThan(1)
  // An invalid schedule is refused before any shard is written.
  const before = await there()
  expect((await apply({ ...set(50), broken: { cron: '99 * * * *', job: 'x' } })).status).toBe(422)
  expect(await there()).toEqual(before)
  await server.close()
  await belfry.stop()
  cluster.close()
})
