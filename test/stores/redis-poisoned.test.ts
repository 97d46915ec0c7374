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
