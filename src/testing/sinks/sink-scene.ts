/** A sink and its receiving end for one contract test, with messages to send. */
import type { Json } from '../../core/checks/json.js'
import type { Delivery, Sink, SinkMessage } from '../../core/sink.js'

export interface ReceivedMessage {
  readonly id: string
  readonly generated_at: string
  readonly schedule_id?: string
  readonly payload: Json
  /** The attempt and the token come from headers or attributes of the transport, not from the body. */
  readonly attempt: number
  readonly token: number
}

export interface OpenedSink {
  readonly sink: Sink
  /** All messages that arrived at the default destination, oldest first, including repeated ones. */
  received(): Promise<readonly ReceivedMessage[]>
  /** Stops the broker as a crash would: connections break, and new ones are refused. */
  down(): Promise<void>
  /** Starts the broker again at the same address with its data. */
  up(): Promise<void>
  /** Valid `toOptions` that name another destination. `arrived` returns the messages there. */
  readonly elsewhere?: { readonly options: Json; arrived(): Promise<readonly ReceivedMessage[]> }
  /** Invalid `toOptions`: refused when a schedule is put, and a final failure when a message has them. */
  readonly badOptions?: readonly Json[]
  /**
   * Makes the broker write only some messages of the next request, and confirm only those. For sinks whose requests
   * hold several messages. `leftOut` counts such answers.
   */
  readonly answerInPart?: () => Promise<{ leftOut(): number }>
  /** A payload that the broker refuses because of its size. */
  readonly tooLarge?: Json
  close?(): Promise<void>
}

/** One test of the contract, named by a sentence. It throws when the sink breaks the promise. */
export interface SinkContractCase {
  readonly name: string
  run(scene: SinkScene): Promise<void>
}

const FIRST_TICK = Date.UTC(2026, 0, 1, 9)
/** How long a call may take without faults. */
const CALL_MS = 20_000

/** Counts the messages of all scenes, so that brokers that dedupe see distinct ids. */
let made = 0

export class SinkScene {
  readonly opened: OpenedSink

  constructor(opened: OpenedSink) {
    this.opened = opened
  }

  get sink(): Sink {
    return this.opened.sink
  }

  /** A message of a new schedule, unless `over` names one. */
  message(over: Partial<SinkMessage> = {}): SinkMessage {
    made += 1
    const tick = FIRST_TICK + made * 1_000
    const schedule = over.schedule_id ?? `contract/${made}`
    const id = over.id ?? `${schedule}-${tick / 1_000}`
    return {
      id,
      dedupeId: `store/${id}`,
      generated_at: new Date(tick).toISOString(),
      schedule_id: schedule,
      payload: { number: made, text: 'ünïcode ✓', nested: [null, { deep: true }] },
      key: schedule,
      attempt: 1,
      token: tick * 1_000,
      startedAt: tick,
      ...over,
    }
  }

  messages(count: number, over: Partial<SinkMessage> = {}): SinkMessage[] {
    return Array.from({ length: count }, () => this.message(over))
  }

  /** Delivers messages as the engine does. */
  deliver(messages: readonly SinkMessage[], timeoutMs = CALL_MS): Promise<readonly Delivery[]> {
    return this.sink.deliver(messages, AbortSignal.timeout(timeoutMs))
  }

  /** Delivers messages. An exception means that the sink is unreachable, as it does for the engine. */
  async attempt(messages: readonly SinkMessage[], timeoutMs = CALL_MS): Promise<readonly Delivery[]> {
    try {
      return await this.deliver(messages, timeoutMs)
    } catch (error) {
      return messages.map(() => ({ delivered: false, error, unreachable: true }))
    }
  }

  /** Repeats the delivery until all messages are delivered. As in the engine, delivered messages are not sent again. */
  async deliverAll(messages: readonly SinkMessage[], withinMs = 60_000): Promise<void> {
    const deadline = performance.now() + withinMs
    for (let left = messages; left.length > 0; ) {
      const outcomes = await this.attempt(left, 5_000)
      left = left.filter((_, at) => outcomes[at]?.delivered !== true)
      if (left.length > 0 && performance.now() > deadline) {
        throw new Error(`${left.length} messages are not delivered after ${withinMs} ms`)
      }
      if (left.length > 0) await pause(100)
    }
  }

  /** Those of the messages that have arrived, in the order of arrival. */
  async arrivedOf(messages: readonly SinkMessage[]): Promise<readonly ReceivedMessage[]> {
    const ids = new Set(messages.map(({ id }) => id))
    return (await this.opened.received()).filter(({ id }) => ids.has(id))
  }
}

export function asReceived({ id, generated_at, schedule_id, payload, attempt, token }: SinkMessage): ReceivedMessage {
  return { id, generated_at, ...(schedule_id === undefined ? {} : { schedule_id }), payload, attempt, token }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
