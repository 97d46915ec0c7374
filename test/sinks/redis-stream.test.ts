import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisStream } from '../../src/sinks/redis-stream/index.js'
import { type Received, sinkContract } from '../../src/testing/sink-contract.js'
import type { OwnServer } from '../servers/postgres.js'

import { startOwnRedis, tellRedis } from '../servers/redis.js'
import { killPublisher } from './killed-publisher.js'

let server: OwnServer | undefined
const url = () => server?.url ?? ''

beforeAll(async () => {
  server = await startOwnRedis(['--appendfsync', 'always'])
})

afterAll(() => server?.stop())

async function entriesOf(stream: string): Promise<Record<string, string>[]> {
  const entries = (await tellRedis(url(), 'XRANGE', stream, '-', '+')) as [string, string[]][]
  return entries.map(([, fields]) => {
    const pairs = Array.from({ length: fields.length / 2 }, (_, at) => [fields[2 * at], fields[2 * at + 1]])
    return Object.fromEntries(pairs)
  })
}

async function arrivedIn(stream: string): Promise<Received[]> {
  return (await entriesOf(stream)).map((fields) => ({
    ...JSON.parse(fields.data ?? ''),
    attempt: Number(fields['belfry-attempt']),
    token: Number(fields['belfry-token']),
  }))
}

sinkContract({
  name: 'redis-stream',
  open: async () => ({
    sink: redisStream({ url: url(), stream: 'events' }),
    received: () => arrivedIn('events'),
    down: async () => server?.crash(),
    up: async () => server?.restart(),
    elsewhere: { options: { stream: 'other', headers: { tenant: 'one' } }, arrived: () => arrivedIn('other') },
    badOptions: [{ stream: '' }, { stream: 'a}b' }, { stram: 'a' }, { headers: { id: '1' } }],
  }),
})

describe('the Redis Streams sink', () => {
  it('loses nothing when the publishing process is killed in the middle of a batch', async () => {
    const options = { url: url(), stream: 'killed' }
    const arrived = () => arrivedIn('killed')
    await killPublisher({ sink: 'redis-stream/index.js', make: 'redisStream', options, arrived })
  })
})
