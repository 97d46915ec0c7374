/**
 * Encodes messages in the same way for every transport: a body, and headers beside it.
 *
 * By default the body is `{ id, generated_at, schedule_id, payload }`, the same bytes in every attempt; attempt and
 * token are headers. With `format: 'cloudevents'` the message is a CloudEvents 1.0 event. In structured mode the body
 * is the whole event as one JSON document. In binary mode the body is the payload alone, and headers carry the event's
 * attributes.
 */
import { failure, quote } from '../core/errors.js'
import type { SinkMessage } from '../core/sink.js'

export interface FormatOptions {
  /** Default `plain`: `{ id, generated_at, schedule_id, payload }`. */
  readonly format?: 'plain' | 'cloudevents'
  /** CloudEvents: one JSON document (default), or the payload with the attributes as headers. */
  readonly mode?: 'structured' | 'binary'
  /** CloudEvents: the source of events, a URI reference. Default `/belfry`. */
  readonly source?: string
  /** CloudEvents: the event type. Default `belfry.tick`. */
  readonly type?: string
}

export const FORMAT_OPTIONS = ['format', 'mode', 'source', 'type'] as const

export interface Encoded {
  readonly contentType: string
  readonly body: string
  /** Values may be any text; a transport that allows less must encode them. */
  readonly headers: Readonly<Record<string, string>>
}

export type Encode = (message: SinkMessage) => Encoded

export interface EncodeRules {
  /** Prefix of CloudEvents attributes as headers: `ce-` on HTTP, `ce_` on Kafka. */
  readonly attributePrefix: string
}

const JSON_TYPE = 'application/json'
const CLOUD_TYPE = 'application/cloudevents+json; charset=utf-8'
/** The characters that RFC 3986 allows. */
const URI_REFERENCE = /^(?:[\w.~:/?#[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$/
const MODES = ['structured', 'binary'] as const
const FORMATS = ['plain', 'cloudevents'] as const

/** Checks the options once, and returns the encoder. `where` names the sink in errors. */
export function encoder(options: FormatOptions, rules: EncodeRules, where: string): Encode {
  const { format = 'plain', mode, source = '/belfry', type = 'belfry.tick' } = options
  checkChoice(where, 'format', format, FORMATS)
  if (format === 'plain') {
    const stray = (['mode', 'source', 'type'] as const).find((name) => options[name] !== undefined)
    if (stray !== undefined) throw invalid(where, `${stray} has no effect without format: 'cloudevents'`)
    return (message) => ({ contentType: JSON_TYPE, body: plainBody(message), headers: attemptHeaders(message) })
  }
  checkChoice(where, 'mode', mode ?? 'structured', MODES)
  for (const [name, text] of Object.entries({ source, type })) {
    if (typeof text !== 'string' || text === '') throw invalid(where, `${name} must be text that is not empty`)
  }
  if (!URI_REFERENCE.test(source)) {
    throw invalid(where, `source is ${quote(source)}; it must be a URI reference, with other characters as %C3%A4`)
  }
  return mode === 'binary'
    ? (message) => binaryEvent(message, source, type, rules.attributePrefix)
    : (message) => structuredEvent(message, source, type)
}

/** The body has exactly these four fields, in this order. */
export function plainBody({ id, generated_at, schedule_id, payload }: SinkMessage): string {
  return JSON.stringify({ id, generated_at, schedule_id, payload })
}

function attemptHeaders({ attempt, token }: SinkMessage): Record<string, string> {
  return { 'belfry-attempt': String(attempt), 'belfry-token': String(token) }
}

function structuredEvent(message: SinkMessage, source: string, type: string): Encoded {
  const event = { ...attributes(message, source, type), datacontenttype: JSON_TYPE, data: message.payload }
  return { contentType: CLOUD_TYPE, body: JSON.stringify(event), headers: attemptHeaders(message) }
}

/** The binary mode has no `datacontenttype`, because the transport's content type takes its place. */
function binaryEvent(message: SinkMessage, source: string, type: string, prefix: string): Encoded {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(attributes(message, source, type))) headers[prefix + name] = String(value)
  return { contentType: JSON_TYPE, body: JSON.stringify(message.payload), headers }
}

/** The attributes of a CloudEvent. The token is text, because integers of CloudEvents have only 32 bits. */
function attributes({ id, generated_at, schedule_id, attempt, token }: SinkMessage, source: string, type: string) {
  return {
    specversion: '1.0',
    id,
    source,
    type,
    time: generated_at,
    ...(schedule_id === undefined ? {} : { subject: schedule_id }),
    belfryattempt: attempt,
    belfrytoken: String(token),
  }
}

/** A header value as CloudEvents over HTTP requires it: printable ASCII, the rest percent-encoded UTF-8. */
export function headerText(value: string): string {
  return /^[!#$&-~]*$/.test(value) ? value : value.replaceAll(/[^!#$&-~]+/gu, percentEncoded)
}

function percentEncoded(text: string): string {
  let encoded = ''
  for (const byte of Buffer.from(text)) encoded += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  return encoded
}

function checkChoice(where: string, option: string, value: string, choices: readonly string[]): void {
  if (choices.includes(value)) return
  throw invalid(where, `${option} is ${quote(value)}; allowed are ${choices.join(', ')}`)
}

function invalid(where: string, problem: string) {
  return failure('OPTION_INVALID', `${where}: ${problem}`)
}
