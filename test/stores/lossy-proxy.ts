import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface LossyProxy {
  readonly url: string
  /** The server gets the request and answers it, but the answer is lost, and the connection with it. */
  loseAnswer(nth?: number): void
  /**
   * As when a firewall forgets connections: those that there are now stay open, and what is sent over them one way
   * arrives nowhere. New ones work.
   */
  swallow(what: 'requests' | 'answers', ofThoseThatSaid?: string): void
  /** New connections are closed at once. */
  refuse(): void
  /** The server's end of every connection is cut, and the client does not hear of it. */
  forget(): void
  close(): void
}

/** Stands between clients and a server, and loses what it is told to. */
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
