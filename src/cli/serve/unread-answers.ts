/**
 * Limits the memory of answers that clients do not read. Above the limit, connections are closed: first those that have
 * taken nothing of their answer for the longest time.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Response = ServerResponse<IncomingMessage>

interface Reader {
  bytesSent: number
  since: number
}

export class UnreadAnswers {
  readonly #maxBytes: number
  readonly #readers = new WeakMap<Socket, Reader>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Call it a few times a second with all requests in flight. */
  watch(inFlight: Iterable<Response>, now: number): void {
    let unread = 0
    const waiting: { readonly socket: Socket; readonly since: number }[] = []
    for (const { req } of inFlight) {
      const { socket } = req
      const { writableLength } = socket
      if (writableLength === 0 || socket.destroyed) continue
      unread += writableLength
      waiting.push({ socket, since: this.#sinceProgress(socket, now) })
    }
    if (unread <= this.#maxBytes) return
    waiting.sort((one, other) => one.since - other.since)
    for (const { socket } of waiting) {
      if (unread <= this.#maxBytes) return
      unread -= socket.writableLength
      socket.destroy()
    }
  }

  /** When the client last took something of its answer. */
  #sinceProgress(socket: Socket, now: number): number {
    const bytesSent = socket.bytesWritten - socket.writableLength
    const reader = this.#readers.get(socket)
    if (reader?.bytesSent === bytesSent) return reader.since
    this.#readers.set(socket, { bytesSent, since: now })
    return now
  }
}
