/** @platformatic/kafka: pure JavaScript, for Node 22.22 and newer. */
import { isIP } from 'node:net'
import { requiredPackage } from '../../required-package.js'
import type { ClientSettings, KafkaClient, KafkaMessage, Sasl } from '../client.js'

interface PlatformaticKafka {
  readonly Producer: new (options: object) => PlatformaticProducer
}

/** The methods called on a producer of @platformatic/kafka. */
export interface PlatformaticProducer {
  metadata(options: { topics: string[]; autocreateTopics?: boolean; forceUpdate?: boolean }): Promise<{
    readonly topics: ReadonlyMap<string, { readonly partitionsCount: number } | undefined>
  }>
  send(options: { messages: readonly object[]; acks: number }): Promise<{
    readonly offsets?: readonly { readonly topic: string; readonly partition: number }[]
  }>
  close(): Promise<void>
}

/**
 * The age at which metadata is refreshed. The client refreshes leaders after errors, so shorter intervals are not
 * needed, and each refresh may reach a hanging broker.
 */
const METADATA_AGE_MS = 5 * 60_000

export async function connectPlatformatic(brokers: readonly string[], settings: ClientSettings): Promise<KafkaClient> {
  const { Producer } = requiredPackage<PlatformaticKafka>('@platformatic/kafka', 'kafka()')
  const { requestTimeoutMs, connectionTimeoutMs, tls, sasl, compression } = settings
  const named = brokers.every((broker) => isIP(broker.slice(0, broker.lastIndexOf(':'))) === 0)
  const producer = new Producer({
    clientId: settings.clientId,
    bootstrapBrokers: [...brokers],
    timeout: settings.replicaTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectTimeout: connectionTimeoutMs,
    retries: 0,
    metadataMaxAge: METADATA_AGE_MS,
    autocreateTopics: true,
    compression,
    ...(tls === undefined ? {} : { tls: { ...tls }, ...(named ? { tlsServerName: true } : {}) }),
    ...(sasl === undefined ? {} : { sasl: saslFor(sasl) }),
    ...settings.more,
  })
  try {
    await producer.metadata({ topics: [] })
  } catch (error) {
    await producer.close().catch(() => {})
    throw error
  }
  return platformaticClient(producer, settings.acks)
}

export function platformaticClient(producer: PlatformaticProducer, acks: number): KafkaClient {
  return {
    recoversItself: false,
    close: () => producer.close(),
    async partitions(topic) {
      try {
        const { topics } = await producer.metadata({ topics: [topic], autocreateTopics: true, forceUpdate: true })
        return topics.get(topic)?.partitionsCount ?? 0
      } catch (error) {
        throw withCode(error)
      }
    },
    async send(topic, partition, messages) {
      const { offsets = [] } = await producer.send({
        acks,
        messages: messages.map((message) => ({ topic, partition, ...inBytes(message) })),
      })
      return offsets
    },
  }
}

const UNKNOWN_TOPIC = 3

/** Adds the error code of an unknown topic, for which the client's error has only a text. */
function withCode(error: unknown): unknown {
  const isUnknown = error instanceof Error && /^Unknown topic/.test(error.message)
  return isUnknown ? Object.assign(new Error(error.message, { cause: error }), { code: UNKNOWN_TOPIC }) : error
}

/** Encodes a message as bytes, which every serializer passes on, including those of the user's own producer. */
function inBytes({ key, value, headers }: KafkaMessage): object {
  const pairs = Object.entries(headers).map(([name, text]) => [Buffer.from(name), Buffer.from(text)] as const)
  return { key: Buffer.from(key), value: Buffer.from(value), headers: new Map(pairs) }
}

function saslFor(sasl: Sasl): object {
  const mechanism = sasl.mechanism.toUpperCase()
  return sasl.mechanism === 'oauthbearer' ? { mechanism, token: sasl.token } : { ...sasl, mechanism }
}
