import { Agent, createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect, it } from 'vitest'
import { ConnectionTurns } from './connection-turns.js'

it('requests that come one after another over a connection leave no listeners behind', async () => {
  const turns = new ConnectionTurns((response) => response.end('answer'))
  const sockets = new Set<Socket>()
  const listeners: number[] = []
  const server = createServer((request, response) => {
    sockets.add(request.socket)
    listeners.push(request.socket.eventNames().reduce((sum, name) => sum + request.socket.listenerCount(name), 0))
    turns.enter(response)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let times = 0; times < 30; times += 1) {
    const answer = await new Promise<IncomingMessage>((resolve, reject) =>
      get({ port, host: '127.0.0.1', agent }, resolve).once('error', reject),
    )
    for await (const _ of answer);
  }
  expect(sockets.size).toBe(1)
  expect(listeners.at(-1)).toBe(listeners[1])
  agent.destroy()
  server.close()
})
