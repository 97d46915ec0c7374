import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

/** A server that speaks enough of Redis to answer INFO, with the given text. */
export async function fakeRedis(info: string): Promise<{ readonly url: string; close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`
  const answerTo = (command: string) => {
    if (/^eval/i.test(command)) return bulk(`\n${JSON.stringify({ info, now: 1_767_225_600_000, serverTime: 0 })}`)
    return /^info/i.test(command) ? bulk(info) : '+OK\r\n'
  }
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      // A command is `*2\r\n$4\r\nINFO\r\n…`: the number of words, then each word after its length.
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
