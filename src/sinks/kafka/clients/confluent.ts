/**
 * Confluent's client, based on librdkafka. It finds leaders and reconnects by itself, and reports on every message. As
 * with the other clients, the producer is not idempotent: it needs only write permission, and receivers recognise
 * repetitions by their id.
 */
import { requiredPackage } from '../../required-package.js'
import type { ClientSettings, KafkaClient, KafkaMessage, Sasl, Written } from '../client.js'
import type { Tls } from '../tls.js'

interface Confluent {
  readonly Producer: new (options: object) => ConfluentProducer
}

interface Metadata {
  readonly topics: readonly { readonly name: string; readonly partitions: readonly unknown[] }[]
}

interface Report {
  readonly topic: string
  readonly partition: number
  readonly opaque?: Pending
}

interface ConfluentProducer {
  connect(options: object, done: (error: unknown) => void): void
  disconnect(patienceMs: number, done: () => void): void
  getMetadata(options: object, done: (error: unknown, metadata?: Metadata) => void): void
  produce(
    topic: string,
    partition: number,
    value: Buffer,
    key: string,
    timestamp: null,
    opaque: Pending,
    headers: readonly Readonly<Record<string, string>>[],
  ): void
  setPollInBackground(set: boolean): void
  on(event: 'delivery-report', listener: (error: unknown, report: Report) => void): void
  on(event: 'event.log', listener: (log: { readonly message: string }) => void): void
}

interface Pending {
  readonly resolve: (written: Written) => void
  readonly reject: (error: unknown) => void
}

/** Above any broker's limit, so that the broker decides what is too large. */
const LARGEST_MESSAGE = 100_000_000
const FLUSH_MS = 1_000
const TOKEN_MS = 3_600_000
const ANY_PARTITION = -1
const ERRORS_ONLY = 3
const ERR__AUTHENTICATION = -169

export async function connectConfluent(brokers: readonly string[], settings: ClientSettings): Promise<KafkaClient> {
  const { Producer } = requiredPackage<Confluent>('@confluentinc/kafka-javascript', 'kafka()')
  const { requestTimeoutMs, connectionTimeoutMs } = settings
  const producer = new Producer({ ...configuration(brokers, settings), ...settings.more })
  // librdkafka reports the reason of a failed connection only in its log. Without the log, the caller would only get a
  // timeout.
  let lastLog = ''
  producer.on('event.log', ({ message }) => {
    lastLog = message
  })
  const close = () => new Promise<void>((resolve) => producer.disconnect(FLUSH_MS, resolve))
  await new Promise<void>((resolve, reject) => {
    producer.connect({ timeout: 2 * connectionTimeoutMs }, (error) =>
      error ? reject(withReason(error, lastLog)) : resolve(),
    )
  })
  producer.setPollInBackground(true)
  producer.on('delivery-report', (error, { opaque, topic, partition }) => {
    if (error) opaque?.reject(error)
    else opaque?.resolve({ topic, partition })
  })
  return {
    recoversItself: true,
    close,
    partitions: (topic) =>
      new Promise((resolve, reject) => {
        producer.getMetadata({ topic, timeout: requestTimeoutMs }, (error, metadata) => {
          const found = metadata?.topics.find(({ name }) => name === topic)
          if (error) reject(error)
          else resolve(found?.partitions.length ?? 0)
        })
      }),
    async send(topic, partition = ANY_PARTITION, messages) {
      const sent = messages.map(
        (message) =>
          new Promise<Written>((resolve, reject) => {
            try {
              produce(producer, topic, partition, message, { resolve, reject })
            } catch (error) {
              reject(error)
            }
          }),
      )
      const outcomes = await Promise.allSettled(sent)
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
      return Promise.all(sent)
    },
  }
}

function withReason(error: unknown, log: string): unknown {
  if (log === '') return error
  const reason = new Error(log.replace(/^\[thrd:[^\]]*\]: /, ''), { cause: error })
  return /authentication error/i.test(log) ? Object.assign(reason, { code: ERR__AUTHENTICATION }) : reason
}

function produce(
  producer: ConfluentProducer,
  topic: string,
  partition: number,
  message: KafkaMessage,
  pending: Pending,
) {
  const headers = Object.entries(message.headers).map(([name, value]) => ({ [name]: value }))
  producer.produce(topic, partition, Buffer.from(message.value), message.key, null, pending, headers)
}

function configuration(brokers: readonly string[], settings: ClientSettings): object {
  const { tls, sasl, requestTimeoutMs, connectionTimeoutMs } = settings
  const security = `${sasl === undefined ? '' : 'sasl_'}${tls === undefined ? 'plaintext' : 'ssl'}`
  return {
    'client.id': settings.clientId,
    'bootstrap.servers': brokers.join(),
    'security.protocol': security,
    acks: settings.acks,
    'compression.codec': settings.compression,
    'request.timeout.ms': settings.replicaTimeoutMs,
    'message.timeout.ms': requestTimeoutMs,
    'socket.timeout.ms': requestTimeoutMs,
    'socket.connection.setup.timeout.ms': Math.max(connectionTimeoutMs, 1_000),
    'reconnect.backoff.max.ms': 1_000,
    // One request in flight per broker keeps a partition in order when librdkafka retries.
    'max.in.flight': 1,
    'linger.ms': 0,
    'message.max.bytes': LARGEST_MESSAGE,
    log_level: ERRORS_ONLY,
    dr_cb: true,
    ...(tls === undefined ? {} : tlsFor(tls)),
    ...(sasl === undefined ? {} : saslFor(sasl)),
  }
}

function tlsFor({ ca, cert, key, passphrase, rejectUnauthorized }: Tls): object {
  return {
    ...(ca === undefined ? {} : { 'ssl.ca.pem': ca }),
    ...(cert === undefined ? {} : { 'ssl.certificate.pem': cert }),
    ...(key === undefined ? {} : { 'ssl.key.pem': key }),
    ...(passphrase === undefined ? {} : { 'ssl.key.password': passphrase }),
    'enable.ssl.certificate.verification': rejectUnauthorized !== false,
  }
}

function saslFor(sasl: Sasl): object {
  if (sasl.mechanism !== 'oauthbearer') {
    const { mechanism, username, password } = sasl
    return { 'sasl.mechanism': mechanism.toUpperCase(), 'sasl.username': username, 'sasl.password': password }
  }
  return {
    'sasl.mechanism': 'OAUTHBEARER',
    oauthbearer_token_refresh_cb: async () => {
      const tokenValue = await sasl.token()
      return { tokenValue, ...claimsOf(tokenValue) }
    },
  }
}

/** The claims that librdkafka requires beside the token. The broker checks only the token. */
function claimsOf(token: string): { readonly principal: string; readonly lifetime: number } {
  try {
    const { sub, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    return {
      principal: String(sub ?? 'belfry'),
      lifetime: typeof exp === 'number' ? exp * 1_000 : Date.now() + TOKEN_MS,
    }
  } catch {
    return { principal: 'belfry', lifetime: Date.now() + TOKEN_MS }
  }
}
