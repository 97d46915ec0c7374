/** The outcomes of requests that a receiver refused or did not answer. */
import { BelfryError, errorRecord, failure } from '../../core/errors.js'
import type { SinkMessage, Undelivered } from '../../core/sink.js'
import type { Answer } from './post.js'
import type { Receiver } from './receiver.js'

const GONE = 410
const TOO_LARGE = 413
/** The upper bound of a Retry-After, because receivers may send any number. */
const MOST_SECONDS = 1e9

/** The error names only the host: the rest of a URL may be a secret. */
export function refusedOutcome(answer: Answer, { url }: Receiver, { startedAt }: SinkMessage): Undelivered {
  const { status, excerpt } = answer
  const redirect = status >= 300 && status < 400 ? ', and redirects are not followed' : ''
  const error = failure('SINK_REFUSED', `${url.host} answered with ${status}${redirect}`)
  const retryAfterMs = retryDelay(answer, startedAt)
  return {
    delivered: false,
    error: excerpt === '' ? error : Object.assign(error, { excerpt }),
    ...(status === GONE || status === TOO_LARGE ? { retryable: false } : {}),
    ...(status === GONE ? { pauseSchedule: `${url.host} answered with 410: it wants no more events` } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }
}

/** The outcome of a request without an answer. A refusal by the address guard is final; all other errors are retried. */
export function unreachableOutcome(error: unknown, { url, isOwn }: Receiver): Undelivered {
  if (error instanceof BelfryError && error.code === 'ADDRESS_REFUSED') {
    return { delivered: false, error, retryable: false }
  }
  const { code, message } = errorRecord(error)
  const why = failure('SINK_UNREACHABLE', `${url.host} is unreachable: ${code ?? message}`, { cause: error })
  return isOwn ? { delivered: false, error: why, unreachable: true } : { delivered: false, error: why }
}

/** Reads Retry-After: seconds, or a date, which is compared with the server's own Date header if there is one. */
function retryDelay({ retryAfter, date }: Answer, startedAt: number): number | undefined {
  if (retryAfter === undefined) return undefined
  if (/^\d+$/.test(retryAfter)) return Math.min(Number(retryAfter), MOST_SECONDS) * 1_000
  if (!retryAfter.endsWith(' GMT')) return undefined
  const until = Date.parse(retryAfter)
  const now = date === undefined ? startedAt : Date.parse(date)
  return Number.isNaN(until - now) ? undefined : Math.max(until - now, 0)
}
