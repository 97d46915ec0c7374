/**
 * A message as it goes over the wire, the same on every transport: a body, and the attributes beside it.
 *
 * By default the body is `{ id, generated_at, schedule_id, payload }`, equal in every attempt to the last byte; attempt
 * and token stand in headers beside it. With `format: 'cloudevents'` it is a CloudEvents 1.0 event: in structured mode one
 * JSON document, in binary mode the payload alone, with the event's attributes as headers.
 */
import { failure, quote } from '../core/errors.js'
import type { SinkMessage } from '../core/sink.js'

export interface FormatOptions {
  /** Default `plain`: `{ id, generated_at, schedule_id, payload }`. */
  readonly format?: 'plain' | 'cloudevents'
  /** Of CloudEvents: one JSON document (default), or the payload with the attributes as headers. */
  readonly mode?: 'structured' | 'binary'
  /** Of CloudEvents: where events come from, a URI or part of one. Default `/belfry`. */
  readonly source?: string
  /** Of CloudEvents: what has happened. Default `belfry.tick`. */
  readonly type?: string
}

/** The names of those options, for sinks that check their own. */
export const FORMAT_OPTIONS = ['format', 'mode', 'source', 'type'] as const

export interface Encoded {
  readonly contentType: string
  readonly body: string
  /** Values may be any text: a transport that allows less encodes them. */
  readonly headers: Readonly<Record<string, string>>
}

export type Encode = (message: SinkMessage) => Encoded

export interface EncodeRules {
  /** Before the names of CloudEvents attributes: `ce-` on HTTP, `ce_` on Kafka. */
  readonly attributePrefix: string
}

const JSON_TYPE = 'application/json'
const CLOUD_TYPE = 'application/cloudevents+json; charset=UTF-8'
const MODES = ['structured', 'binary'] as const
const FORMATS = ['plain', 'cloudevents'] as const

/** Checks the options once and returns how messages are written. `where` names the sink in errors. */
export function encoder(options: FormatOptions, rules: EncodeRules, where: string): Encode {
  const { format = 'plain', mode, source = '/belfry', type = 'belfry.tick' } = options
  checkChoice(where, 'format', format, FORMATS)
  if (format === 'plain') {
    const stray = (['mode', 'source', 'type'] as const).find((name) => options[name] !== undefined)
    if (stray !== undefined) throw invalid(where, `${stray} says nothing without format: 'cloudevents'`)
    return (message) => ({ contentType: JSON_TYPE, body: plainBody(message), headers: attemptHeaders(message) })
  }
  checkChoice(where, 'mode', mode ?? 'structured', MODES)
  for (const [name, text] of Object.entries({ source, type })) {
    if (typeof text !== 'string' || text === '') throw invalid(where, `${name} must be text that is not empty`)
  }
  return mode === 'binary'
    ? (message) => binaryEvent(message, source, type, rules.attributePrefix)
    : (message) => structuredEvent(message, source, type)
}

/** The four fields, in this order, whatever else the message carries. */
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

/** Without `datacontenttype`, which is the transport's own content type in this mode. */
function binaryEvent(message: SinkMessage, source: string, type: string, prefix: string): Encoded {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(attributes(message, source, type))) headers[prefix + name] = String(value)
  return { contentType: JSON_TYPE, body: JSON.stringify(message.payload), headers }
}

/** Tokens do not fit into the integers of CloudEvents, which have 32 bits: so they are text. */
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

/** As CloudEvents and HTTP want header values: printable ASCII, everything else as percent-encoded UTF-8. */
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
