/** The receiver of a webhook: an HTTP server that records requests and gives configured answers. */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

export interface Request {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** The number of the connection, counted from 1. */
  readonly connection: number
}

export type Reply = (request: Request, response: ServerResponse) => void

const accept: Reply = (_, response) => response.writeHead(204).end()

export class TestReceiver {
  readonly requests: Request[] = []
  reply: Reply = accept
  #server: Server | undefined
  #sockets = new Map<Socket, number>()
  #connections = 0
  #port = 0

  get port(): number {
    return this.#port
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/hook`
  }

  async start(): Promise<this> {
    const server = createServer((request, response) => void this.#hear(request, response))
    server.on('connection', (socket) => {
      this.#connections += 1
      this.#sockets.set(socket, this.#connections)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.#port, '127.0.0.1', resolve)
    })
    this.#port = (server.address() as AddressInfo).port
    this.#server = server
    return this
  }

  /** Simulates a crash: connections break, and new ones are refused. */
  async stop(): Promise<void> {
    const server = this.#server
    if (server === undefined) return
    this.#server = undefined
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of this.#sockets.keys()) socket.destroy()
    await closed
  }

  answer(status: number, body = '', headers: Record<string, string> = {}): void {
    this.reply = (_, response) => response.writeHead(status, headers).end(body)
  }

  accept(): void {
    this.reply = accept
  }

  get last(): Request {
    const last = this.requests.at(-1)
    if (last === undefined) throw new Error('nothing has come yet')
    return last
  }

  async #hear(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      return
    }
    const heard = {
      url: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(chunks).toString('utf8'),
      connection: this.#sockets.get(request.socket) ?? 0,
    }
    this.requests.push(heard)
    this.reply(heard, response)
  }
}
