import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** An address that follows whichever server is the primary, as a proxy or a virtual IP does it. */
export async function floatingAddress(url: string): Promise<{
  readonly url: string
  moveTo(url: string): void
  announce(url: string): void
  silence(url: string): void
  close(): Promise<void>
}> {
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
  const drop = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    moveTo(next) {
      port = Number(new URL(next).port)
      drop()
    },
    /** As a name does it: whoever is connected stays where it is. */
    announce(next) {
      port = Number(new URL(next).port)
    },
    /** As when a machine is gone: whoever is connected hears nothing more, not even that. Whoever comes is sent elsewhere. */
    silence(next) {
      port = Number(new URL(next).port)
      for (const socket of sockets) {
        socket.unpipe()
        socket.resume()
      }
    },
    async close() {
      server.close()
      drop()
      await once(server, 'close')
    },
  }
}
