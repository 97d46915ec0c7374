import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface LossyProxy {
  readonly url: string
  /** The server executes the request, but the answer and the connection are lost. */
  loseAnswer(nth?: number): void
  /**
   * Simulates a firewall that forgets connections: open ones stay open, but lose the data of one direction. New ones
   * work. `ofThoseThatSaid` limits this to connections whose client has sent that text.
   */
  swallow(what: 'requests' | 'answers', ofThoseThatSaid?: string): void
  /** Closes new connections at once. */
  refuse(): void
  /** Cuts the server's end of every connection without telling the client. */
  forget(): void
  close(): void
}

/** A proxy between clients and a server that loses data on request. */
export async function lossyProxy(server: URL): Promise<LossyProxy> {
  const pairs = new Set<{ readonly client: Socket; readonly upstream: Socket; said: string }>()
  const swallowed = new Map<Socket, 'requests' | 'answers'>()
  let refusing = false
  let untilLost = 0
  const proxy = createServer((client) => {
    if (refusing) return void client.destroy()
    const upstream = connect(Number(server.port), server.hostname)
    const pair = { client, upstream, said: '' }
    pairs.add(pair)
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.on('data', (chunk) => {
      pair.said += chunk.toString('latin1')
      if (swallowed.get(client) !== 'requests') upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (swallowed.get(client) === 'answers') return
      untilLost -= 1
      if (untilLost === 0) client.resetAndDestroy()
      else client.write(chunk)
    })
    client.on('close', () => {
      upstream.destroy()
      pairs.delete(pair)
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port } = proxy.address() as { readonly port: number }
  return {
    url: Object.assign(new URL(server), { host: `127.0.0.1:${port}` }).toString(),
    loseAnswer(nth = 1) {
      untilLost = nth
    },
    swallow(what, ofThoseThatSaid = '') {
      for (const { client, said } of pairs) if (said.includes(ofThoseThatSaid)) swallowed.set(client, what)
    },
    refuse() {
      refusing = true
    },
    forget() {
      for (const { upstream } of pairs) upstream.destroy()
    },
    close() {
      for (const { client } of pairs) client.destroy()
      proxy.close()
    },
  }
}
