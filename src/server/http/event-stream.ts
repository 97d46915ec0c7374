/** One client of `/v1/events`: writes server-sent events to it, and drops it when it reads too slowly. */
import { systemClock } from '../../core/clock.js'

/** A client with more unread bytes than this is too slow. */
const MAX_UNREAD_BYTES = 1_048_576
const BEAT_MS = 15_000

export class EventStream {
  readonly body: ReadableStream<Uint8Array>
  readonly #encoder = new TextEncoder()
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #onEnd: () => void = () => {}
  #stopBeat = () => {}

  constructor() {
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        cancel: () => this.#ended(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: MAX_UNREAD_BYTES }),
    )
    this.#beat()
  }

  /** Calls the listener once, when the stream has ended. */
  onEnd(listener: () => void): void {
    if (this.#controller === undefined) listener()
    else this.#onEnd = listener
  }

  send(event: string, data: unknown, id?: string): void {
    const head = id === undefined ? '' : `id: ${id}\n`
    this.#write(`event: ${event}\n${head}data: ${JSON.stringify(data)}\n\n`)
  }

  close(): void {
    const controller = this.#controller
    this.#ended()
    controller?.close()
  }

  #write(text: string): void {
    const controller = this.#controller
    if (controller === undefined) return
    if ((controller.desiredSize ?? 0) > 0) {
      controller.enqueue(this.#encoder.encode(text))
      return
    }
    // The client reads too slowly: it misses events from here on, and must reload.
    controller.enqueue(this.#encoder.encode('event: reset\ndata: {"reason":"slow"}\n\n'))
    this.close()
  }

  #beat(): void {
    this.#stopBeat = systemClock.after(BEAT_MS, () => {
      this.#write(': still here\n\n')
      if (this.#controller !== undefined) this.#beat()
    })
  }

  #ended(): void {
    this.#controller = undefined
    this.#stopBeat()
    this.#onEnd()
    this.#onEnd = () => {}
  }
}
