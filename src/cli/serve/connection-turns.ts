/**
 * One request of a connection at a time. A client may send many without waiting for answers (pipelining), but HTTP/1.1
 * answers in order, so an answer that is made before the client has read the one before only takes memory:
 *
 *     GET a, GET b, GET c    →    a is answered, and read; then b is answered, and read; then c
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Response = ServerResponse<IncomingMessage>

/** A connection with more unanswered requests is closed. */
const MAX_WAITING = 50

export class ConnectionTurns {
  readonly #start: (response: Response) => void
  /** The requests of each connection: the first is being answered, the others wait. */
  readonly #queues = new WeakMap<Socket, Response[]>()

  constructor(start: (response: Response) => void) {
    this.#start = start
  }

  /** Starts the request now, or after those before it on its connection. */
  enter(response: Response): void {
    const { socket } = response.req
    const queue = this.#queues.get(socket) ?? []
    this.#queues.set(socket, queue)
    queue.push(response)
    if (queue.length === 1) this.#run(socket, queue, response)
    else if (queue.length > MAX_WAITING) socket.destroy()
  }

  #run(socket: Socket, queue: Response[], response: Response): void {
    // `finish` comes when the operating system has taken the whole answer; a broken connection has none.
    response.once('finish', () => {
      queue.shift()
      const [next] = queue
      if (next !== undefined && !socket.destroyed) this.#run(socket, queue, next)
    })
    this.#start(response)
  }
}
