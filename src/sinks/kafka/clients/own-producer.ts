/**
 * The user's own producer. A producer with the interface of kafkajs chooses partitions itself, and does not report the
 * partition of each message. So each of its requests has messages of one key, and the answer must name a partition.
 */
import { failure } from '../../../core/errors.js'
import type { KafkaClient, KafkaMessage } from '../client.js'
import { type PlatformaticProducer, platformaticClient } from './platformatic.js'

/** The methods called on a producer of kafkajs, or of KafkaJS in @confluentinc/kafka-javascript. */
export interface KafkaProducer {
  connect(): Promise<unknown>
  send(record: { topic: string; messages: KafkaMessage[] }): Promise<unknown>
}

export type OwnProducer = KafkaProducer | PlatformaticProducer

export async function connectOwnProducer(producer: OwnProducer): Promise<KafkaClient> {
  if ('metadata' in producer) return platformaticClient(producer, -1)
  // A connected producer may refuse to connect again; an unconnected one fails when it sends.
  await Promise.resolve(producer.connect()).catch(() => {})
  return {
    recoversItself: true,
    close: async () => {},
    partitions: async () => undefined,
    async send(topic, _, messages) {
      const answer: unknown = await producer.send({ topic, messages: messages.map((message) => ({ ...message })) })
      const named = Array.isArray(answer) ? answer : []
      return named.map(({ topicName }: { topicName?: string }) => ({ topic: topicName ?? topic, partition: undefined }))
    },
  }
}

export function checkOwnProducer(producer: OwnProducer, where: string): void {
  const calls =
    typeof producer === 'object' && producer !== null && 'metadata' in producer ? ['send'] : ['connect', 'send']
  for (const call of calls) {
    if (typeof (producer as unknown as Record<string, unknown> | null)?.[call] === 'function') continue
    throw failure(
      'OPTION_INVALID',
      `${where}: producer has no ${call}(); give one of kafkajs, @confluentinc/kafka-javascript or @platformatic/kafka`,
    )
  }
}
