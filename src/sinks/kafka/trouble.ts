/** What went wrong with a request to Kafka, whichever client says it. */
import { failure, quote } from '../../core/errors.js'
import type { Undelivered } from '../../core/sink.js'

export type Trouble =
  /** About a message, which may be one of many: tried in halves. */
  | 'message'
  /** About a topic: final for everything that goes there. */
  | 'topic'
  /** There is no such topic, or not yet. */
  | 'missing'
  /** The cluster does not take the user's name and password. */
  | 'credentials'
  /** A broker refuses for now: it leads no more, or replicas are missing. */
  | 'broker'
  /** No connection, or no answer on it. */
  | 'unanswered'

/** A client has answered, and does not name a partition that it was given messages for. */
export class LeftOut extends Error {}

/** Kafka's numbers, which all clients pass on. INVALID_TOPIC_EXCEPTION, TOPIC_ and CLUSTER_AUTHORIZATION_FAILED, POLICY_VIOLATION. */
const TOPIC = [17, 29, 31, 44]
/** MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_RECORD. */
const MESSAGE = [10, 18, 87]
/** UNKNOWN_TOPIC_OR_PARTITION, and what librdkafka calls it. */
const MISSING = [3, -188, -190]
/** UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED, and librdkafka's ERR__AUTHENTICATION. */
const CREDENTIALS = [33, 34, 58, -169]
const DEPTH = 6

export function troubleOf(error: unknown): Trouble {
  if (error instanceof LeftOut) return 'broker'
  const code = kafkaCode(error)
  if (TOPIC.includes(code)) return 'topic'
  if (MESSAGE.includes(code)) return 'message'
  if (MISSING.includes(code)) return 'missing'
  if (CREDENTIALS.includes(code) || isAuthentication(error)) return 'credentials'
  return code > 0 ? 'broker' : 'unanswered'
}

/** An outcome for a message that Kafka did not take. */
export function undelivered(cause: unknown, trouble: Trouble, topic: string): Undelivered {
  const said = cause instanceof Error ? cause.message : String(cause)
  switch (trouble) {
    case 'message':
    case 'topic':
      return {
        delivered: false,
        error: failure('SINK_REFUSED', `Kafka does not take this message for topic ${quote(topic)}: ${said}`, {
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

/** What the broker itself said, however the client wraps it: 0 when it said nothing. */
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
