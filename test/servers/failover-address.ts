import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface FailoverAddress {
  readonly url: string
  /** Fails over like a virtual IP: breaks all connections, and connects new ones to the given server. */
  failOver(url: string): void
  /** Fails over like a DNS name: open connections stay as they are, and new ones go to the given server. */
  redirectNew(url: string): void
  /**
   * Fails over as after a power failure: open connections stay silent, without a close, and new ones go to the given
   * server.
   */
  vanish(url: string): void
  close(): Promise<void>
}

/** A TCP proxy with a fixed address, which connects to one server at a time, at first to the one at `url`. */
export async function failoverAddress(url: string): Promise<FailoverAddress> {
  let port = Number(new URL(url).port)
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    client.pipe(upstream).pipe(client)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const redirectNew = (next: string) => {
    port = Number(new URL(next).port)
  }
  const breakAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    failOver(next) {
      redirectNew(next)
      breakAll()
    },
    redirectNew,
    vanish(next) {
      redirectNew(next)
      for (const socket of sockets) {
        socket.unpipe()
        socket.resume()
      }
    },
    async close() {
      server.close()
      breakAll()
      await once(server, 'close')
    },
  }
}
