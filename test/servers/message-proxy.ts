import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Passes a message of the client on, or swallows it. It may answer or close the connection for the server. */
export type Intercept = (
  message: string,
  ends: { readonly client: Socket; readonly server: Socket },
) => 'pass' | 'swallow'

export interface MessageProxy {
  readonly url: string
  intercept(how: Intercept): void
  close(): Promise<void>
}

/** A proxy that lets a test intercept each message of the client. */
export async function messageProxy(url: string): Promise<MessageProxy> {
  const [target, own] = [new URL(url), new URL(url)]
  let intercept: Intercept = () => 'pass'
  const sockets = new Set<Socket>()
  const proxy = createServer((client) => {
    const server = connect(Number(target.port), target.hostname)
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('data', (chunk) => {
      if (intercept(chunk.toString('latin1'), { client, server }) === 'pass') server.write(chunk)
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
    intercept(how) {
      intercept = how
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}
