/** A sink that records every call, and returns scripted answers. */
import type { Delivery, DeliveryOptions, Sink, SinkMessage } from '../../src/core/sink.js'

export type Script = (messages: readonly SinkMessage[], signal: AbortSignal) => Promise<readonly Delivery[]>

export const accept: Script = async (messages) => messages.map(() => ({ delivered: true }))

/** Fails as a client does whose broker is unreachable. */
export const away: Script = async () => {
  throw new Error('connect ECONNREFUSED')
}

/** Answers each message separately. */
export function each(reply: (message: SinkMessage) => Delivery): Script {
  return async (messages) => messages.map(reply)
}

export const no: Delivery = { delivered: false, error: new Error('not now') }

export class ScriptedSink implements Sink {
  readonly calls: (readonly SinkMessage[])[] = []
  readonly delivered: SinkMessage[] = []
  readonly delivery: DeliveryOptions
  script: Script = accept
  /** The number of unanswered messages, and its maximum so far. */
  inFlight = 0
  most = 0

  constructor(delivery: DeliveryOptions = {}) {
    this.delivery = delivery
  }

  async deliver(messages: readonly SinkMessage[], signal: AbortSignal): Promise<readonly Delivery[]> {
    this.calls.push(messages)
    this.inFlight += messages.length
    this.most = Math.max(this.most, this.inFlight)
    try {
      const answers = await this.script(messages, signal)
      this.delivered.push(...messages.filter((_, at) => answers[at]?.delivered === true))
      return answers
    } finally {
      this.inFlight -= messages.length
    }
  }

  get ids(): string[] {
    return this.delivered.map(({ id }) => id)
  }

  /** Pauses in the middle of a call until `release`. */
  hold(): { release(script?: Script): void } {
    let release: (script: Script) => void = () => {}
    const released = new Promise<Script>((resolve) => {
      release = resolve
    })
    this.script = async (messages, signal) => (await released)(messages, signal)
    return {
      release: (script = accept) => {
        this.script = script
        release(script)
      },
    }
  }
}

export function memoryLog() {
  const lines: string[] = []
  const line = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`)
  return { lines, debug: () => {}, info: line('info'), warn: line('warn'), error: line('error') }
}
