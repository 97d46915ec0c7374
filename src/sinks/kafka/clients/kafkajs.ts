/**
 * kafkajs, without its own retries. They skip a broker that has answered the request before. That broker may be the new
 * leader of a moved partition, which the answer then omits. The producer is not idempotent: kafkajs does not count
 * messages whose answer was lost, so brokers would drop the next ones as duplicates.
 */
import { failure } from '../../../core/errors.js'
import { requiredPackage } from '../../required-package.js'
import type { ClientSettings, KafkaClient, KafkaMessage, Sasl } from '../client.js'
import { errorKind } from '../kafka-errors.js'

interface KafkaJs {
  readonly Kafka: new (options: object) => { producer(options: object): KafkaJsProducer }
  readonly logLevel: { readonly NOTHING: number }
  readonly CompressionTypes: { readonly None: number; readonly GZIP: number }
}

interface KafkaJsProducer {
  connect(): Promise<unknown>
  disconnect(): Promise<unknown>
  send(record: {
    topic: string
    messages: readonly (KafkaMessage & { readonly partition?: number })[]
    acks: number
    timeout: number
    compression: number
  }): Promise<readonly { readonly topicName: string; readonly partition: number }[] | undefined>
}

interface Asked {
  readonly topic: string
  readonly message: { readonly partition?: number }
  readonly partitionMetadata: readonly unknown[]
}

/** Thrown by the partitioner to return the number of partitions, so that a message that only counts them is never sent. */
class Counted extends Error {
  readonly partitions: number

  constructor(partitions: number) {
    super('the partitions were counted')
    this.partitions = partitions
  }
}

const ONCE = { retries: 0, initialRetryTime: 100, maxRetryTime: 1_000 }
const QUESTION: KafkaMessage = { key: '', value: '', headers: {} }

export async function connectKafkaJs(brokers: readonly string[], settings: ClientSettings): Promise<KafkaClient> {
  const { Kafka, logLevel, CompressionTypes } = requiredPackage<KafkaJs>('kafkajs', 'kafka()')
  const { acks, requestTimeoutMs, connectionTimeoutMs, compression } = settings
  const cluster = new Kafka({
    clientId: settings.clientId,
    brokers,
    logLevel: logLevel.NOTHING,
    requestTimeout: requestTimeoutMs,
    connectionTimeout: connectionTimeoutMs,
    authenticationTimeout: connectionTimeoutMs,
    retry: ONCE,
    ...(settings.tls === undefined ? {} : { ssl: settings.tls }),
    ...(settings.sasl === undefined ? {} : { sasl: saslFor(settings.sasl) }),
    ...settings.more,
  })
  const codec = compression === 'none' ? CompressionTypes.None : CompressionTypes.GZIP
  const request = { acks, compression: codec, timeout: settings.replicaTimeoutMs }
  const make = () => cluster.producer({ retry: ONCE, createPartitioner: () => chooseOrCount })
  const producer = make()
  // A second producer looks up topics. kafkajs requests all topics of a producer at once, and one missing topic fails
  // the request.
  const lookup = make()
  let lookups: Promise<unknown> = Promise.resolve()
  let isSilent = false
  const close = async () => void (await Promise.allSettled([producer.disconnect(), lookup.disconnect()]))
  try {
    await Promise.all([producer.connect(), lookup.connect()])
  } catch (error) {
    await close()
    throw error
  }
  return {
    recoversItself: false,
    close,
    partitions(topic) {
      const count = lookups.then(() => {
        if (isSilent) throw new Error('the broker has not answered the previous lookup')
        return countPartitions(lookup, { topic, messages: [QUESTION], ...request })
      })
      lookups = count.catch((error: unknown) => {
        isSilent ||= errorKind(error) === 'unanswered'
      })
      return count
    },
    async send(topic, partition, messages) {
      const placed = messages.map((message) => ({ ...message, ...(partition === undefined ? {} : { partition }) }))
      const answer = await producer.send({ topic, messages: placed, ...request })
      return (answer ?? []).map((each) => ({ topic: each.topicName, partition: each.partition }))
    },
  }
}

export function checkKafkaJsCompression({ compression }: ClientSettings, where: string): void {
  if (compression === 'none' || compression === 'gzip') return
  throw failure(
    'UNSUPPORTED',
    `${where}: kafkajs does not support ${compression}; use compression: 'gzip', or another client`,
  )
}

/** Chooses the message's partition, or counts partitions: in kafkajs only a partitioner sees them. */
function chooseOrCount({ message, partitionMetadata }: Asked): number {
  if (message.partition === undefined) throw new Counted(partitionMetadata.length)
  return message.partition
}

async function countPartitions(
  lookup: KafkaJsProducer,
  question: Parameters<KafkaJsProducer['send']>[0],
): Promise<number> {
  try {
    await lookup.send(question)
  } catch (error) {
    const { cause, originalError } = error as { cause?: unknown; originalError?: unknown }
    for (const each of [error, cause, originalError]) if (each instanceof Counted) return each.partitions
    throw error
  }
  throw failure('UNSUPPORTED', `kafkajs has not asked the partitioner about topic ${question.topic}`)
}

function saslFor(sasl: Sasl): object {
  if (sasl.mechanism !== 'oauthbearer') return sasl
  return { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: await sasl.token() }) }
}
