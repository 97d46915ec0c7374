/** One sink with a healthy receiver and many that are slow or never answer, over real sockets and in real time. */
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterEach, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { webhook } from '../../src/sinks/webhook/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { TestReceiver } from './receiver.js'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** Starts a server on its own port, so that each server is another origin. */
async function originOf(server: Server): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A server that accepts connections and reads requests, but never answers. */
const tarPit = () => originOf(createServer((socket) => socket.resume()))

/** A server that answers 200 at once, and then sends its body byte by byte without an end. */
const dragging = () =>
  originOf(
    createHttpServer((request, response) => {
      request.resume()
      response.writeHead(200)
      const timer = setInterval(() => response.write('.'), 50)
      response.on('close', () => clearInterval(timer))
    }),
  )

/** Sends an event a second to a healthy receiver beside these, and returns its longest delay in milliseconds. */
async function latenessBeside(origins: readonly string[], seconds: number, concurrency = 32): Promise<number> {
  const receiver = await new TestReceiver().start()
  ends.push(() => receiver.stop())
  const late: number[] = []
  receiver.reply = ({ body }, response) => {
    late.push(Date.now() - Date.parse(JSON.parse(body).generated_at))
    response.writeHead(204).end()
  }
  const sinks = { hooks: webhook({ allow: ['127.0.0.1'], concurrency }) }
  const belfry = createBelfry({ store: memory(), sinks, stopGrace: '100ms' })
  ends.push(() => belfry.stop({ grace: '100ms' }))
  await belfry.start()
  const put = (id: string, url: string) => belfry.schedules.put(id, { every: '1s', to: 'hooks', toOptions: { url } })
  // The healthy receiver comes last, so that its events are behind all others in the sink's queue.
  for (const [at, origin] of origins.entries()) await put(`a/${at}`, `${origin}/`)
  await put('b/healthy', receiver.url)
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  await expect.poll(() => late.length, { timeout: seconds * 3_000, interval: 50 }).toBeGreaterThanOrEqual(seconds)
  delay.disable()
  // Leaves out the delay that a busy machine adds.
  return Math.max(...late) - delay.max / 1e6
}

describe('a healthy receiver', () => {
  it('is never more than a second late beside fifty tar pits', { timeout: 90_000 }, async () => {
    const origins = await Promise.all(Array.from({ length: 50 }, tarPit))
    expect(await latenessBeside(origins, 12)).toBeLessThan(1_000)
  })

  it('is not held up by receivers that answer and drag their bodies', { timeout: 60_000 }, async () => {
    const origins = await Promise.all(Array.from({ length: 3 }, dragging))
    const many = Array.from({ length: 60 }, (_, at) => `${origins[at % 3]}/${at}`)
    expect(await latenessBeside(many, 8)).toBeLessThan(1_000)
  })

  it('is not held up where a sink has only a few calls', { timeout: 60_000 }, async () => {
    const origins = await Promise.all(Array.from({ length: 12 }, tarPit))
    expect(await latenessBeside(origins, 8, 4)).toBeLessThan(1_000)
  })
})
