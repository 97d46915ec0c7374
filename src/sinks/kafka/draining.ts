import { type Clock, sleep, systemClock } from '../../core/clock.js'
import type { KafkaClient } from './client.js'

/** A client that is closed while requests are under way: those are answered first, or given up after this time. */
export function draining(client: KafkaClient, patienceMs: number, clock: Clock = systemClock): KafkaClient {
  const underWay = new Set<Promise<unknown>>()
  return {
    healsItself: client.healsItself,
    partitions: (topic) => client.partitions(topic),
    send(topic, partition, messages) {
      const sent = client.send(topic, partition, messages)
      underWay.add(sent)
      const settled = () => underWay.delete(sent)
      sent.then(settled, settled)
      return sent
    },
    async close() {
      const enough = new AbortController()
      await Promise.race([Promise.allSettled(underWay), sleep(clock, patienceMs, enough.signal)])
      enough.abort()
      await client.close()
    },
  }
}
