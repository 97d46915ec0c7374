/** The stream of events. It reconnects after a lost connection, and resumes after the last event. */
import type { ProcessEvent } from '../server/shapes/event.js'
import type { RunSummary } from '../server/shapes/run.js'
import { pause } from './pause.js'
import type { Requests } from './request.js'
import { ServiceError } from './service-error.js'

export type ServiceEvent =
  /** All later events will follow. The listener should load the current state now. */
  | { readonly type: 'ready'; readonly instance: string }
  | { readonly type: 'run'; readonly run: RunSummary }
  | { readonly type: 'gone'; readonly id: string }
  /** An event of the service's process that sends the stream. */
  | ({ readonly type: 'instance' } & ProcessEvent)
  /** Some events were missed. The listener should reload its state. */
  | { readonly type: 'reset'; readonly reason: 'gap' | 'slow' }

const FIRST_WAIT_MS = 500
const MAX_WAIT_MS = 30_000

export interface EventOptions {
  readonly signal?: AbortSignal
  /** Called once after the connection is lost, and again only after events have arrived. */
  readonly onLost?: () => void
}

export async function* serviceEvents(
  requests: Requests,
  { signal, onLost }: EventOptions = {},
): AsyncGenerator<ServiceEvent> {
  let last: string | undefined
  let waitMs = FIRST_WAIT_MS
  while (!signal?.aborted) {
    try {
      const headers = { accept: 'text/event-stream', 'last-event-id': last }
      const { body } = await requests.send('/v1/events', { headers, ...(signal === undefined ? {} : { signal }) })
      for await (const { id, event } of eventsOf(body, signal)) {
        last = id ?? last
        waitMs = FIRST_WAIT_MS
        yield event
      }
    } catch (error) {
      if (signal?.aborted) return
      if (error instanceof ServiceError && !isPassing(error)) throw error
    }
    if (waitMs === FIRST_WAIT_MS && !signal?.aborted) onLost?.()
    await pause(waitMs, signal)
    waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)
  }
}

function isPassing({ status }: ServiceError): boolean {
  return status === 0 || status === 429 || status >= 500
}

async function* eventsOf(
  body: ReadableStream<Uint8Array> | null,
  signal: AbortSignal | undefined,
): AsyncGenerator<{ readonly id?: string; readonly event: ServiceEvent }> {
  if (body === null) return
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  const leave = () => void reader.cancel().catch(() => {})
  signal?.addEventListener('abort', leave)
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
      const parts = text.split('\n\n')
      text = parts.pop() ?? ''
      for (const part of parts) {
        const event = eventOf(part)
        if (event !== undefined) yield event
      }
    }
  } finally {
    signal?.removeEventListener('abort', leave)
    await reader.cancel().catch(() => {})
  }
}

function eventOf(part: string): { readonly id?: string; readonly event: ServiceEvent } | undefined {
  const fields: Record<string, string> = {}
  for (const line of part.split('\n')) {
    const at = line.indexOf(': ')
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2)
  }
  const { event: type, data, id } = fields
  if (type === undefined || data === undefined) return undefined
  const given: unknown = JSON.parse(data)
  const event = (type === 'run' ? { type, run: given } : { ...(given as object), type }) as ServiceEvent
  return id === undefined ? { event } : { id, event }
}
