import { connect, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { systemClock } from '../clock.js'
import { inTime, Silence } from './in-time.js'

it('an answer after the limit counts as none', async () => {
  await expect(inTime(systemClock, 10, new Promise(() => {}))).rejects.toThrow(Silence)
})

it('an answer that arrived while the event loop was blocked counts as in time', async () => {
  const server = createServer((socket) => void socket.end('answer')).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { readonly port: number }
  const client = connect(port, '127.0.0.1')
  const answer = new Promise<string>((resolve) => client.once('data', (data) => resolve(String(data))))
  await new Promise((resolve) => client.once('connect', resolve))
  const awaited = inTime(systemClock, 50, answer)
  for (const until = performance.now() + 300; performance.now() < until; );
  expect(await awaited).toBe('answer')
  server.close()
})
