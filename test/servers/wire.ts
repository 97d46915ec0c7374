import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** What to do with something that a client says: let it pass, or answer for the wire. */
export type Cut = (said: string, wire: { readonly client: Socket; readonly server: Socket }) => 'pass' | 'swallow'

/** A wire to a server that can be cut at the word. */
export async function wireTo(url: string): Promise<{ url: string; cut: (how: Cut) => void; close(): Promise<void> }> {
  const [target, own] = [new URL(url), new URL(url)]
  let how: Cut = () => 'pass'
  const sockets = new Set<Socket>()
  const proxy = createServer((client) => {
    const server = connect(Number(target.port), target.hostname)
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('data', (chunk) => {
      if (how(chunk.toString('latin1'), { client, server }) === 'pass') server.write(chunk)
    })
    server.on('data', (chunk) => client.write(chunk))
    server.on('end', () => client.end())
    client.on('end', () => server.end())
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  own.port = String((proxy.address() as AddressInfo).port)
  return {
    url: own.href,
    cut: (next) => {
      how = next
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}
