/**
 * What it means that NATS has not stored a message.
 *
 * No responders says little: no stream listens to the subject, or its servers are electing a leader, or the server that we
 * are connected to (a leaf node, a member without JetStream) sees none that has JetStream at the moment. So the cluster is
 * asked whether there is such a stream. Only an answer that there is none is about the message.
 */
import { failure, quote } from '../../core/errors.js'
import type { Delivery, SinkMessage } from '../../core/sink.js'

/** The name of the stream that listens to a subject. Rejects with `STREAM_NOT_FOUND`, or when no server can tell. */
export type FindStream = (subject: string) => Promise<string>

/** JetStream's own numbers: a message is over the stream's limit, and no stream is found. */
const MESSAGE_EXCEEDS_MAXIMUM = 10_054
const STREAM_NOT_FOUND = 10_059
/** The cluster has no leader, is incomplete, has no room, or its JetStream is off: no message gets through. */
const OUTAGES = [10_004, 10_008, 10_009, 10_023, 10_028, 10_039, 10_047, 10_076, 10_118]
/** A leader that has just been elected may not know all streams yet. */
const ATTEMPTS_WITHOUT_STREAM = 3

export async function refusal(
  cause: unknown,
  subject: string,
  { attempt }: Pick<SinkMessage, 'attempt'>,
  findStream: FindStream,
): Promise<Delivery> {
  const { name, message, code } = cause as { name?: string; message?: string; code?: unknown }
  const refused = (why: string): Delivery => ({ delivered: false, error: refusedError(subject, why, cause) })
  const forGood = (why: string): Delivery => ({ ...refused(why), retryable: false }) as Delivery
  if (name === 'JetStreamNotEnabled') {
    const why = await whyNobodyAnswers(subject, findStream)
    if (why !== NO_STREAM) return outage(why, cause)
    return attempt < ATTEMPTS_WITHOUT_STREAM ? refused(why) : forGood(why)
  }
  if (name === 'PermissionViolationError' || name === 'InvalidSubjectError') return forGood(String(message))
  if (name === 'InvalidArgumentError') return forGood(`it is larger than the server allows (${message})`)
  if (code === MESSAGE_EXCEEDS_MAXIMUM) return forGood(`it is larger than the stream allows (${message})`)
  const isTold = name === 'JetStreamApiError' || name === 'JetStreamError'
  return isTold && !OUTAGES.includes(Number(code)) ? refused(String(message)) : outage(String(message), cause)
}

const NO_STREAM = 'no stream listens to that subject: add one, or correct the subject'

async function whyNobodyAnswers(subject: string, findStream: FindStream): Promise<string> {
  try {
    return `the stream ${quote(await findStream(subject))} has no leader at the moment`
  } catch (error) {
    const { code, name, message } = error as { code?: unknown; name?: string; message?: string }
    if (code === STREAM_NOT_FOUND) return NO_STREAM
    if (name !== 'JetStreamNotEnabled') return `JetStream does not say which streams there are: ${message}`
    return 'no server with JetStream answers: there is no leader, or none is connected, or JetStream is off (start it with -js), or, behind a leaf node, no stream listens to that subject'
  }
}

function refusedError(subject: string, why: string, cause: unknown): Error {
  return failure('SINK_REFUSED', `NATS does not take this message for ${quote(subject)}: ${why}`, { cause })
}

function outage(why: string, cause: unknown): Delivery {
  const error = failure('SINK_UNREACHABLE', `NATS has not stored the message: ${why}`, { cause })
  return { delivered: false, error, unreachable: true }
}
