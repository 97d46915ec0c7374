import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

/** A server that speaks just enough of Redis to be asked what it is, and says what it was told to say. */
export async function fakeRedis(info: string): Promise<{ readonly url: string; close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`
  const answerTo = (command: string) => {
    if (/^eval/i.test(command)) return `*2\r\n${bulk(info)}${bulk('1767225600000')}`
    return /^info/i.test(command) ? bulk(info) : '+OK\r\n'
  }
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      // A command begins with how many words it has; its name is the first of them.
      for (const [, name = ''] of chunk.toString('latin1').matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g))
        socket.write(answerTo(name))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
