/** A key of the store that another program has overwritten: the instance says so, is not ready, and heals with the key. */
import { expect, it } from 'vitest'
import { createBelfry, type Logger, silentLogger } from '../../src/index.js'
import { createServer } from '../../src/server/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { testRedis } from '../servers/test-redis.js'

const KEYS = [
  ['schedule-due', 'ticker'],
  ['queue-priorities:job:job', 'dispatcher'],
  ['instances', 'keeper'],
] as const

it.each(KEYS)(
  'while %s is overwritten, /readyz is 503 and the log says what to do',
  async (key, part) => {
    const own = await testRedis()
    const [client, other] = [await own.client(), await own.client()]
    const lines: string[] = []
    const note = (fields: object, text: string) => lines.push(`${text} ${JSON.stringify(fields)}`)
    const logger: Logger = { ...silentLogger, warn: note, error: note }
    const belfry = createBelfry({ store: redis({ client, prefix: own.prefix }), poll: '50ms', logger })
    belfry.job('job', { run: () => {} })
    await belfry.start()
    const server = createServer(belfry, { logger: silentLogger })
    const ready = async () => {
      const response = await server.fetch(new Request('http://localhost/readyz'))
      const { code = '', detail = '' } = (await response.json()) as { code?: string; detail?: string }
      return `${response.status} ${code} ${detail.includes(part) ? part : ''}`.trim()
    }
    const findings = async () =>
      (await belfry.doctor()).flatMap((check) => (check.name === 'stored keys' ? check.findings : []))
    const name = `${own.prefix}{0}:${key}`
    await expect.poll(ready).toBe('200')
    expect(await findings()).toEqual([])
    await other.sendCommand(['SET', name, 'overwritten'])
    await expect.poll(ready, { timeout: 10_000 }).toBe(`503 NOT_READY ${part}`)
    expect(lines.join('\n')).toMatch(
      /has a key of the store that another program has overwritten: look for it with belfry doctor/,
    )
    // Doctor looks at the keys whose names it knows.
    const known = [
      {
        what: `the key ${name} is a string, and the store needs a zset: another program has overwritten it`,
        fix: `restore it from a backup, or lose what it held: redis-cli del '${name}'`,
      },
    ]
    expect(await findings()).toEqual(key.includes(':') ? [] : known)
    await other.sendCommand(['DEL', name])
    await expect.poll(ready, { timeout: 20_000 }).toBe('200')
    await server.close()
    await belfry.stop({ grace: 0 })
    await own.close()
  },
  60_000,
)

it('in a store of several shards, a bad key stops its shard alone', async () => {
  const own = await testRedis()
  const [client, other] = [await own.client(), await own.client()]
  const store = redis({ client, prefix: own.prefix, shards: 3 })
  /** How often each schedule ran. */
  const ran = new Map<string, number>()
  const note = (id: string) => void ran.set(id, (ran.get(id) ?? 0) + 1)
  const belfry = createBelfry({ store, poll: '50ms', logger: silentLogger })
  belfry.job<string>('job', { run: ({ payload }) => note(payload) })
  await belfry.start()
  const ids = Array.from({ length: 12 }, (_, at) => `s${at}`)
  for (const id of ids) await belfry.schedules.put(id, { every: '1s', job: 'job', payload: id })
  const shardKeys = await other.sendCommand(['KEYS', `${own.prefix}*:schedule-due`])
  const [bad = '', healthy = ''] = (shardKeys as string[]).sort()
  const lost = new Set((await other.sendCommand(['ZRANGE', bad, '0', '-1'])) as string[])
  expect(lost.size).toBeGreaterThan(0)
  expect(lost.size).toBeLessThan(ids.length)
  await other.sendCommand(['SET', bad, 'overwritten'])
  await expect.poll(() => belfry.stuckParts, { timeout: 10_000 }).toContain('ticker')
  ran.clear()
  // More often than ticks are recorded ahead.
  const goOn = () => ids.filter((id) => !lost.has(id)).every((id) => (ran.get(id) ?? 0) >= 3)
  await expect.poll(goOn, { timeout: 30_000 }).toBe(true)
  // The same for a key that claims need.
  const badQueue = healthy.replace('schedule-due', 'queue-priorities:job:job')
  await other.sendCommand(['SET', badQueue, 'overwritten'])
  await expect.poll(() => belfry.stuckParts, { timeout: 20_000 }).toContain('dispatcher')
  ran.clear()
  await expect.poll(() => ran.size, { timeout: 20_000 }).toBeGreaterThan(0)
  await belfry.stop({ grace: 0 })
  await own.close()
}, 60_000)
