/**
 * Maps the errors of a NATS publish to outcomes.
 *
 * "No responders" has several causes: no stream covers the subject, or the stream is electing a leader, or the
 * connected server (a leaf node, a member without JetStream) currently sees no JetStream. So the sink asks the cluster
 * for the stream. The message is at fault only if the cluster answers that no stream covers the subject. Any other
 * result is an outage.
 */
import { failure, quote } from '../../core/errors.js'
import type { Delivery, SinkMessage } from '../../core/sink.js'

/** Returns the name of the stream that covers a subject. Rejects with `STREAM_NOT_FOUND`, or when no server knows. */
export type FindStream = (subject: string) => Promise<string>

/** JetStream error codes: a message exceeds the stream's limit; no stream was found. */
const MESSAGE_EXCEEDS_MAXIMUM = 10_054
const STREAM_NOT_FOUND = 10_059
/** The cluster has no leader, lacks members or space, or JetStream is off: no message gets through. */
const OUTAGES = [10_004, 10_008, 10_009, 10_023, 10_028, 10_039, 10_047, 10_076, 10_118]
/** A newly elected leader may not know all streams yet, so the first answers are not final. */
const ATTEMPTS_WITHOUT_STREAM = 3

export async function refusal(
  cause: unknown,
  subject: string,
  { attempt }: Pick<SinkMessage, 'attempt'>,
  findStream: FindStream,
): Promise<Delivery> {
  const { name, message, code } = cause as { name?: string; message?: string; code?: unknown }
  const refused = (why: string): Delivery => ({ delivered: false, error: refusedError(subject, why, cause) })
  const final = (why: string): Delivery => ({ ...refused(why), retryable: false }) as Delivery
  if (name === 'JetStreamNotEnabled') {
    const why = await whyNoResponders(subject, findStream)
    if (why !== NO_STREAM) return outage(why, cause)
    return attempt < ATTEMPTS_WITHOUT_STREAM ? refused(why) : final(why)
  }
  if (name === 'PermissionViolationError' || name === 'InvalidSubjectError') return final(String(message))
  if (name === 'InvalidArgumentError') return final(`it is larger than the server allows (${message})`)
  if (code === MESSAGE_EXCEEDS_MAXIMUM) return final(`it is larger than the stream allows (${message})`)
  const isApiError = name === 'JetStreamApiError' || name === 'JetStreamError'
  return isApiError && !OUTAGES.includes(Number(code)) ? refused(String(message)) : outage(String(message), cause)
}

const NO_STREAM = 'no stream covers that subject: add one, or correct the subject'

async function whyNoResponders(subject: string, findStream: FindStream): Promise<string> {
  try {
    return `the stream ${quote(await findStream(subject))} has no leader at the moment`
  } catch (error) {
    const { code, name, message } = error as { code?: unknown; name?: string; message?: string }
    if (code === STREAM_NOT_FOUND) return NO_STREAM
    if (name !== 'JetStreamNotEnabled') return `JetStream cannot list its streams: ${message}`
    return 'no server with JetStream answers: there is no leader, or none is connected, or JetStream is off (start it with -js), or, behind a leaf node, no stream covers that subject'
  }
}

function refusedError(subject: string, why: string, cause: unknown): Error {
  return failure('SINK_REFUSED', `NATS refuses this message for ${quote(subject)}: ${why}`, { cause })
}

function outage(why: string, cause: unknown): Delivery {
  const error = failure('SINK_UNREACHABLE', `NATS has not stored the message: ${why}`, { cause })
  return { delivered: false, error, unreachable: true }
}
