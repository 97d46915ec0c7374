/**
 * The interface between the sink and the Kafka clients that it supports. A client only sends requests. Partitions,
 * retries and timeouts are the sink's work, so that they are equal with all clients.
 */
import type { Tls } from './tls.js'

export interface KafkaMessage {
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

/** A partition that an answer confirms as written. */
export interface Written {
  readonly topic: string
  /** Undefined if the user's own producer chose it. */
  readonly partition: number | undefined
}

export interface KafkaClient {
  /**
   * The number of partitions of a topic; undefined if the user's own producer chooses them. Creates a missing topic if the
   * cluster allows that. Rejects with the client's or broker's error.
   */
  partitions(topic: string): Promise<number | undefined>
  /**
   * Sends one request, once. Resolves to the partitions that the answer confirms; rejects with the client's or broker's error.
   * Requests for different partitions may be in flight at once.
   */
  send(topic: string, partition: number | undefined, messages: readonly KafkaMessage[]): Promise<readonly Written[]>
  /**
   * Whether the client finds new leaders and reconnects by itself. Any other client is replaced when a broker does not
   * answer.
   */
  readonly recoversItself: boolean
  /** Closes the client after its last request. Requests in flight are answered first. */
  close(): Promise<void>
}

/** Settings with the same meaning for every client. */
export interface ClientSettings {
  readonly clientId: string
  readonly tls: Tls | undefined
  readonly sasl: Sasl | undefined
  readonly compression: Compression
  /** -1: all in-sync replicas; 1: the leader only. */
  readonly acks: -1 | 1
  readonly requestTimeoutMs: number
  /** How long a broker waits for replicas. It is less than the request timeout, so that the broker can still answer. */
  readonly replicaTimeoutMs: number
  readonly connectionTimeoutMs: number
  /** Other options of the client, in its own terms. */
  readonly more: Readonly<Record<string, unknown>>
}

export type Sasl =
  | { readonly mechanism: PasswordMechanism; readonly username: string; readonly password: string }
  | { readonly mechanism: 'oauthbearer'; readonly token: () => Promise<string> }

export const PASSWORD_MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const
export type PasswordMechanism = (typeof PASSWORD_MECHANISMS)[number]

export const COMPRESSIONS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
export type Compression = (typeof COMPRESSIONS)[number]

/** Connects through one of these brokers, in this order. */
export type Connect = (brokers: readonly string[], settings: ClientSettings) => Promise<KafkaClient>
