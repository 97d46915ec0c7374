/** Classifies the errors of all Kafka clients. */
import { failure, quote } from '../../core/errors.js'
import type { Undelivered } from '../../core/sink.js'

export type ErrorKind =
  /** A message of the request is invalid: the request is split to find it. */
  | 'message'
  /** The topic is invalid or forbidden: final for all its messages. */
  | 'topic'
  /** The topic does not exist, or not yet. */
  | 'missing'
  /** The cluster refuses the credentials. */
  | 'credentials'
  /** A broker refuses temporarily: it is no longer the leader, or replicas are missing. */
  | 'broker'
  /** No connection, or no answer. */
  | 'unanswered'

/** The client's answer does not confirm the partition of the request. */
export class MissingPartition extends Error {}

/**
 * Kafka error codes, which all clients pass on: INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED,
 * CLUSTER_AUTHORIZATION_FAILED, POLICY_VIOLATION.
 */
const TOPIC = [17, 29, 31, 44]
/** MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_RECORD. */
const MESSAGE = [10, 18, 87]
/** UNKNOWN_TOPIC_OR_PARTITION, and librdkafka's own codes for it. */
const MISSING = [3, -188, -190]
/** UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED, and librdkafka's ERR__AUTHENTICATION. */
const CREDENTIALS = [33, 34, 58, -169]
const DEPTH = 6

export function errorKind(error: unknown): ErrorKind {
  if (error instanceof MissingPartition) return 'broker'
  const code = kafkaCode(error)
  if (TOPIC.includes(code)) return 'topic'
  if (MESSAGE.includes(code)) return 'message'
  if (MISSING.includes(code)) return 'missing'
  if (CREDENTIALS.includes(code) || isAuthentication(error)) return 'credentials'
  return code > 0 ? 'broker' : 'unanswered'
}

/** The outcome of a message that was not written. */
export function undelivered(cause: unknown, kind: ErrorKind, topic: string): Undelivered {
  const said = cause instanceof Error ? cause.message : String(cause)
  switch (kind) {
    case 'message':
    case 'topic':
      return {
        delivered: false,
        error: failure('SINK_REFUSED', `Kafka refuses this message for topic ${quote(topic)}: ${said}`, {
          cause,
        }),
        retryable: false,
      }
    case 'missing':
      return {
        delivered: false,
        error: failure('SINK_REFUSED', `topic ${quote(topic)} does not exist: ${said}`, { cause }),
      }
    case 'credentials': {
      const error = failure('SINK_UNREACHABLE', `the Kafka cluster refuses the credentials: ${said}`, { cause })
      return { delivered: false, error, unreachable: true }
    }
    case 'broker':
    case 'unanswered': {
      const error = failure('SINK_UNREACHABLE', `Kafka cannot write to topic ${quote(topic)} now: ${said}`, { cause })
      return { delivered: false, error, unreachable: true }
    }
  }
}

/** Finds the broker's error code in an error that a client has wrapped up to `depth` times; 0 without one. */
export function kafkaCode(error: unknown, depth = DEPTH): number {
  if (typeof error !== 'object' || error === null || depth === 0) return 0
  const { code, apiCode, errors, originalError, cause } = error as Record<string, unknown>
  for (const number of [apiCode, code]) if (typeof number === 'number' && Number.isInteger(number)) return number
  const inner = [originalError, cause, ...(Array.isArray(errors) ? errors : [])]
  for (const each of inner) {
    const found = kafkaCode(each, depth - 1)
    if (found !== 0) return found
  }
  return 0
}

function isAuthentication(error: unknown, depth = DEPTH): boolean {
  if (typeof error !== 'object' || error === null || depth === 0) return false
  const { name, code, errors, originalError, cause } = error as Record<string, unknown>
  if (name === 'KafkaJSSASLAuthenticationError' || code === 'PLT_KFK_AUTHENTICATION') return true
  const inner = [originalError, cause, ...(Array.isArray(errors) ? errors : [])]
  return inner.some((each) => isAuthentication(each, depth - 1))
}
