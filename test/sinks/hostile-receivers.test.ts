/** Receivers that do their worst to whoever calls them: a call ends by itself or by its signal, and keeps nothing. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/core/sink.js'
import { webhook } from '../../src/sinks/webhook/index.js'
import { scene } from './deliveries.js'

const OK = 'HTTP/1.1 200 OK\r\n'
const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

interface Hostile {
  readonly port: number
  readonly sockets: ReadonlySet<Socket>
}

/** A server that treats each connection as the test says, once a request has begun to arrive. */
async function hostile(treat: (socket: Socket) => void): Promise<Hostile> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.once('data', () => treat(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

/** Writes as fast as the connection takes it, until it breaks. */
function flood(socket: Socket, head: string, again: string): void {
  socket.write(head)
  const chunk = again.repeat(Math.ceil(65_536 / again.length))
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
  }
  socket.on('drain', more)
  more()
}

/** Writes something every 20 ms, until the connection breaks. */
function drag(socket: Socket, head: string, again: string): void {
  socket.write(head)
  const timer = setInterval(() => socket.write(again), 20)
  socket.on('close', () => clearInterval(timer))
}

const redirect = async (socket: Socket) => {
  const pit = await hostile(() => {})
  socket.end(`HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:${pit.port}/\r\ncontent-length: 0\r\n\r\n`)
}

const bomb = gzipSync(Buffer.alloc(64 * 2 ** 20))
const packed = (status: string) => (socket: Socket) => {
  socket.write(`HTTP/1.1 ${status}\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`)
  socket.write(bomb)
}

interface Form {
  readonly form: string
  readonly treat: (socket: Socket) => void
  readonly scheme?: 'http' | 'https'
  /** What the call ends with: `TIMEOUT` is the test's signal. */
  readonly ending: 'delivered' | 'SINK_REFUSED' | 'SINK_UNREACHABLE' | 'TIMEOUT'
}

const FORMS: readonly Form[] = [
  { form: 'never answer', treat: () => {}, ending: 'TIMEOUT' },
  { form: 'drag the status line', treat: (socket) => drag(socket, 'HTTP/1.1 20', ''), ending: 'TIMEOUT' },
  { form: 'drag a header', treat: (socket) => drag(socket, `${OK}x-slow: `, 'a'), ending: 'TIMEOUT' },
  { form: 'drag headers', treat: (socket) => drag(socket, OK, 'a: b\r\n'), ending: 'TIMEOUT' },
  { form: 'send headers without end', treat: (socket) => flood(socket, OK, 'a: b\r\n'), ending: 'SINK_UNREACHABLE' },
  { form: 'send one huge header', treat: (socket) => flood(socket, `${OK}a: `, 'b'), ending: 'SINK_UNREACHABLE' },
  {
    form: 'say 100 Continue without end',
    treat: (socket) => flood(socket, '', 'HTTP/1.1 100 Continue\r\n\r\n'),
    ending: 'SINK_UNREACHABLE',
  },
  {
    form: 'drag early hints',
    treat: (socket) => drag(socket, '', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'),
    ending: 'SINK_UNREACHABLE',
  },
  {
    form: 'switch protocols',
    treat: (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    ending: 'SINK_UNREACHABLE',
  },
  { form: 'redirect to a tar pit', treat: (socket) => void redirect(socket), ending: 'SINK_REFUSED' },
  { form: 'hang in the TLS handshake', scheme: 'https', treat: () => {}, ending: 'TIMEOUT' },
  {
    form: 'drag the TLS handshake',
    scheme: 'https',
    treat: (socket) => drag(socket, '\x16\x03\x03\x40', '\x00'),
    ending: 'TIMEOUT',
  },
  { form: 'answer TLS with text', scheme: 'https', treat: (socket) => socket.write(OK), ending: 'SINK_UNREACHABLE' },
  { form: 'hang up', treat: (socket) => socket.end(), ending: 'SINK_UNREACHABLE' },
  { form: 'accept with a gzip bomb', treat: packed('200 OK'), ending: 'delivered' },
  { form: 'refuse with a gzip bomb', treat: packed('500 Error'), ending: 'SINK_REFUSED' },
  {
    form: 'refuse with a body without end',
    treat: (socket) => flood(socket, 'HTTP/1.1 500 Error\r\n\r\n', 'why? '),
    ending: 'SINK_REFUSED',
  },
  {
    form: 'refuse with a body that drags',
    treat: (socket) => drag(socket, 'HTTP/1.1 500 Error\r\n\r\n', 'why? '),
    ending: 'SINK_REFUSED',
  },
  {
    form: 'accept with trailers without end',
    treat: (socket) => flood(socket, `${OK}transfer-encoding: chunked\r\n\r\n0\r\n`, 'a: b\r\n'),
    ending: 'delivered',
  },
  {
    form: 'accept with a chunk extension without end',
    treat: (socket) => flood(socket, `${OK}transfer-encoding: chunked\r\n\r\n1;`, 'a=b;'),
    ending: 'delivered',
  },
]

function endOf(outcome: Delivery | undefined): string {
  if (outcome === undefined) return 'nothing'
  if (outcome.delivered) return 'delivered'
  const { code, name } = outcome.error as { readonly code?: string; readonly name?: string }
  return name === 'TimeoutError' ? 'TIMEOUT' : (code ?? 'no code')
}

it('receivers at many origins leave a limited number of idle connections', async () => {
  const accept = (socket: Socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n')
  const receivers = await Promise.all(Array.from({ length: 300 }, () => hostile(accept)))
  const sink = webhook({ allow: ['127.0.0.1'] })
  ends.push(() => sink.close?.())
  for (const { port } of receivers) {
    const message = scene.message({ options: { url: `http://127.0.0.1:${port}/` } })
    expect(await sink.deliver([message], AbortSignal.timeout(20_000))).toEqual([{ delivered: true }])
  }
  const open = () => receivers.reduce((sum, { sockets }) => sum + sockets.size, 0)
  await expect.poll(open, { timeout: 5_000 }).toBe(256)
})

describe('receivers that', () => {
  it.each(FORMS)('$form hold up no call, and no connection stays', async ({ treat, scheme = 'http', ending }) => {
    const { port, sockets } = await hostile(treat)
    const sink = webhook({ allow: ['127.0.0.1'] })
    ends.push(() => sink.close?.())
    const message = scene.message({ options: { url: `${scheme}://127.0.0.1:${port}/` } })
    const before = process.memoryUsage().rss
    const signal = AbortSignal.timeout(ending === 'TIMEOUT' ? 300 : 20_000)
    const [outcome] = await sink.deliver([message], signal)
    expect(endOf(outcome)).toBe(ending)
    await expect.poll(() => sockets.size, { timeout: 5_000 }).toBe(0)
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 2 ** 20)
  })
})
