/**
 * The seam between the sink and the clients of Kafka that it can use. A client only carries requests: which partition a
 * message goes to, what is tried again, and when to give up is the sink's to decide, alike for all of them.
 */
import type { Tls } from './tls.js'

export interface KafkaMessage {
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

/** A partition that the answer to a request names as written. */
export interface Written {
  readonly topic: string
  /** Undefined where a producer of the user's chose it. */
  readonly partition: number | undefined
}

export interface KafkaClient {
  /**
   * How many partitions a topic has; undefined where a producer of the user's chooses them. A topic that does not exist is
   * created if the cluster allows that. Rejects with what the client or the broker says.
   */
  partitions(topic: string): Promise<number | undefined>
  /**
   * One request, tried once: resolves to what the answer names as written, rejects with what the client or the broker says.
   * Requests for different partitions may be under way at once.
   */
  send(topic: string, partition: number | undefined, messages: readonly KafkaMessage[]): Promise<readonly Written[]>
  /** Whether it finds new leaders and lost brokers by itself; else it is replaced when a broker does not answer. */
  readonly healsItself: boolean
  /** No request follows. Those that are under way are answered first. */
  close(): Promise<void>
}

/** What every client is told, in words that mean the same for all of them. */
export interface ClientSettings {
  readonly clientId: string
  readonly tls: Tls | undefined
  readonly sasl: Sasl | undefined
  readonly compression: Compression
  /** Waits for all replicas in sync, or for the leader alone. */
  readonly acks: -1 | 1
  readonly requestTimeoutMs: number
  /** How long a broker waits for replicas: less, so that it can still answer. */
  readonly replicaTimeoutMs: number
  readonly connectionTimeoutMs: number
  /** What else the client should know, in its own words. */
  readonly more: Readonly<Record<string, unknown>>
}

export type Sasl =
  | { readonly mechanism: PasswordMechanism; readonly username: string; readonly password: string }
  | { readonly mechanism: 'oauthbearer'; readonly token: () => Promise<string> }

export const PASSWORD_MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const
export type PasswordMechanism = (typeof PASSWORD_MECHANISMS)[number]

export const COMPRESSIONS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
export type Compression = (typeof COMPRESSIONS)[number]

/** Connects by these brokers, the first of them first. */
export type Connect = (brokers: readonly string[], settings: ClientSettings) => Promise<KafkaClient>
