/** A server that accepts connections and never answers, as a hung one. No sink may leave connections open there. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createClient } from '@redis/client'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isSilent } from '../../src/sinks/nats/silent-server.js'
import { connectedInTime } from '../../src/sinks/redis-stream/clients.js'

const open = new Set<Socket>()
let greeting: string | undefined
let server: Server
let host: string

beforeEach(async () => {
  greeting = undefined
  server = createServer((socket) => {
    open.add(socket)
    socket.resume().on('error', () => {})
    socket.on('close', () => open.delete(socket))
    if (greeting !== undefined) socket.write(greeting)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(() => {
  server.close()
})

describe('a silent server', () => {
  it('is distinguished from one that greets, and from an unreachable one', async () => {
    expect(await isSilent(`nats://${host}`, 50)).toBe(true)
    greeting = 'INFO {}\r\n'
    expect(await isSilent(host, 5_000)).toBe(false)
    await expect.poll(() => open.size).toBe(0)
    server.close()
    expect(await isSilent(host, 5_000)).toBe(false)
  })

  it.each([
    ['@redis/client', () => createClient({ url: `redis://${host}`, socket: { reconnectStrategy: false } })],
    ['ioredis', () => new Redis(`redis://${host}`, { lazyConnect: true, retryStrategy: null })],
  ])('times out for a client of %s, and the connection is closed', async (_, make) => {
    await expect(connectedInTime(make() as never, 100)).rejects.toThrow(/has not answered within/)
    await expect.poll(() => open.size).toBe(0)
  })
})
