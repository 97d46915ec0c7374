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
    reference: '@redis/client: XADD of the same entry with trimming, not deduped, a batch at a time in one pipeline',
    send: (events) =>
      Promise.all(events.map((event) => client.sendCommand(['XADD', 'bench-bare', ...trimmed, ...entry(event)]))),
    async close() {
      await client.sendCommand(['DEL', 'bench-ours', '{bench-ours}:belfry-seen', 'bench-bare'])
      client.destroy()
    },
  }
}

/**
 * @param {import('../sinks.js').Event} event
 * @returns {string[]}
 */
function entry(event) {
  const beside = ['content-type', 'application/json', 'belfry-attempt', '1', 'belfry-token', '1800000000000000']
  return ['id', event.id, 'key', event.schedule_id, 'data', JSON.stringify(event), ...beside]
}
