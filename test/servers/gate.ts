import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface Gate {
  readonly port: number
  /** As a crash looks from outside: connections break, and new ones are refused. */
  shut(): Promise<void>
  open(): Promise<void>
  /** As when a machine is gone: whoever is connected hears nothing more, not even that. */
  silence(): void
}

/** Stands before a server, so that it can be away for a moment without being stopped. `join` puts the two ends together. */
export async function gate(
  target: () => number,
  join: (client: Socket, server: Socket) => void = (client, server) => client.pipe(server).pipe(client),
): Promise<Gate> {
  const sockets = new Set<Socket>()
  const door = createServer((client) => {
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
    door.listen(port, '127.0.0.1')
    await once(door, 'listening')
    return (door.address() as AddressInfo).port
  }
  const port = await listen(0)
  return {
    port,
    async shut() {
      const closed = once(door, 'close')
      door.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
    async open() {
      await listen(port)
    },
    silence() {
      for (const socket of sockets) {
        socket.unpipe()
        socket.removeAllListeners('data')
        socket.resume()
      }
    },
  }
}
