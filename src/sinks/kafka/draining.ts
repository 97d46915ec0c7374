import { type Clock, sleep, systemClock } from '../../core/clock.js'
import type { KafkaClient } from './client.js'

/** Closes the client when its requests in flight are answered, at the latest after `timeoutMs`. */
export function draining(client: KafkaClient, timeoutMs: number, clock: Clock = systemClock): KafkaClient {
  const inFlight = new Set<Promise<unknown>>()
  return {
    recoversItself: client.recoversItself,
    partitions: (topic) => client.partitions(topic),
    send(topic, partition, messages) {
      const sent = client.send(topic, partition, messages)
      inFlight.add(sent)
      const settled = () => inFlight.delete(sent)
      sent.then(settled, settled)
      return sent
    },
    async close() {
      const enough = new AbortController()
      await Promise.race([Promise.allSettled(inFlight), sleep(clock, timeoutMs, enough.signal)])
      enough.abort()
      await client.close()
    },
  }
}
