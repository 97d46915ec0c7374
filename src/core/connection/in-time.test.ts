import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { systemClock } from '../clock.js'
import { inTime, Silence } from './in-time.js'

it('an answer after the limit counts as none', async () => {
  await expect(inTime(systemClock, 10, new Promise(() => {}))).rejects.toThrow(Silence)
})

it('the time in which the event loop was blocked does not count', async () => {
  // The server is in this process, so it reads the request only when the loop is free again.
  const server = createServer((socket) => socket.on('data', () => socket.end('answer'))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { readonly port: number }
  const client = connect(port, '127.0.0.1')
  await once(client, 'connect')
  client.write('request')
  const answer = once(client, 'data').then(String)
  const awaited = inTime(systemClock, 200, answer)
  for (const until = performance.now() + 500; performance.now() < until; );
  expect(await awaited).toBe('answer')
  server.close()
})
