import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface OutageProxy {
  readonly port: number
  /** Breaks all connections and refuses new ones, as a crashed server does. */
  cut(): Promise<void>
  restore(): Promise<void>
  /**
   * Discards all bytes of open connections, as after a power failure: neither side sees a close. `andNew`: also those of
   * connections that are opened later, until `restore`.
   */
  swallow(andNew?: 'andNew'): void
}

/**
 * A proxy that makes a server unreachable without stopping it. `join` connects the two ends; by default it copies
 * bytes.
 */
export async function outageProxy(
  target: () => number,
  join: (client: Socket, server: Socket) => void = (client, server) => client.pipe(server).pipe(client),
): Promise<OutageProxy> {
  const sockets = new Set<Socket>()
  let isSilent = false
  const proxy = createServer((client) => {
    if (isSilent) {
      sockets.add(client)
      client.on('error', () => {}).on('close', () => sockets.delete(client))
      client.resume()
      return
    }
    const server = connect(target(), '127.0.0.1')
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        server.destroy()
      })
    }
    join(client, server)
  })
  const listen = async (port: number) => {
    proxy.listen(port, '127.0.0.1')
    await once(proxy, 'listening')
    return (proxy.address() as AddressInfo).port
  }
  const port = await listen(0)
  return {
    port,
    async cut() {
      const closed = once(proxy, 'close')
      proxy.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
    async restore() {
      if (!proxy.listening) await listen(port)
      isSilent = false
    },
    swallow(andNew) {
      isSilent = andNew !== undefined
      for (const socket of sockets) {
        socket.unpipe()
        socket.removeAllListeners('data')
        socket.resume()
      }
    },
  }
}
