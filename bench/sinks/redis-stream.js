// @ts-check
import { redisStream } from '../../dist/sinks/redis-stream/index.js'
import { redisClient, redisUrl } from '../harness/redis.js'

/**
 * @param {import('../sinks.js').Batching} batching
 * @returns {Promise<import('../sinks.js').Broker>}
 */
export async function openRedisStream(batching) {
  const client = await redisClient()
  const trimmed = ['MAXLEN', '~', '1000000', '*']
  return {
    sink: redisStream({ url: await redisUrl(), stream: 'bench-ours', ...batching }),
    reference: '@redis/client: XADD with trimming, a batch at a time in one pipeline',
    send: (events) =>
      Promise.all(
        events.map((event) => client.sendCommand(['XADD', 'bench-bare', ...trimmed, 'data', JSON.stringify(event)])),
      ),
    async close() {
      await client.sendCommand(['DEL', 'bench-ours', '{bench-ours}:belfry-seen', 'bench-bare'])
      client.destroy()
    },
  }
}
