/** Clients that ask for much and read nothing. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { collectGarbage } from '../../collect-garbage.js'
import { type RawService, rawService, statusOf } from './raw-service.js'

let service: RawService
const sockets: Socket[] = []

beforeEach(async () => {
  service = await rawService()
})

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await service.close()
})

async function open(): Promise<Socket> {
  const socket = connect(service.port, '127.0.0.1')
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${service.token}\r\n\r\n`
}

/** A request after which the service closes the connection. */
function lastGet(path: string): string {
  return get(path).replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')
}

/** The memory of the process in megabytes, after garbage is collected. */
async function memoryMb(): Promise<number> {
  await collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1_048_576
}

describe('pipelined requests', () => {
  it('are answered one by one, in order', async () => {
    const answers = await service.send(
      `${get('/healthz')}${get('/v1/session')}GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    )
    expect(answers.match(/HTTP\/1\.1 200/g)).toHaveLength(3)
    expect(answers.indexOf('"status":"ok"')).toBeLessThan(answers.indexOf('"role":"admin"'))
  })

  it('that are too many close the connection', async () => {
    const answers = await service.send(get('/v1/jobs/x').repeat(2_000), { waitMs: 5_000 }).catch(() => '')
    expect((answers.match(/HTTP\/1\.1 /g) ?? []).length).toBeLessThan(2_000)
    expect(statusOf(await service.send(lastGet('/healthz')))).toBe(200)
  })
})

describe('many connections', () => {
  it('that are idle make room for new ones', async () => {
    await service.close()
    service = await rawService({ maxConnections: 20 })
    for (let at = 0; at < 30; at += 1) {
      const socket = await open()
      socket.resume().write(get('/healthz'))
    }
    await expect.poll(async () => statusOf(await service.send(lastGet('/healthz')).catch(() => ''))).toBe(200)
  })
})

describe('large answers that nobody reads', () => {
  it('take a bounded amount of memory, and other requests are answered', { timeout: 60_000 }, async () => {
    for (let at = 0; at < 120; at += 1) await service.belfry.enqueue('x', `${at}`.repeat(50_000))
    const before = await memoryMb()
    const readers = await Promise.all(Array.from({ length: 150 }, open))
    for (const socket of readers) {
      socket.pause()
      socket.write(get('/v1/runs?limit=1000').repeat(40))
    }
    let most = 0
    for (let at = 0; at < 40; at += 1) {
      await sleep(100)
      most = Math.max(most, (await memoryMb()) - before)
    }
    expect(most).toBeLessThan(300)
    // A loaded machine can delay any one request, so the fastest of three counts.
    const tookMs: number[] = []
    for (let at = 0; at < 3; at += 1) {
      const startedAt = performance.now()
      expect(statusOf(await service.send(lastGet('/healthz')))).toBe(200)
      tookMs.push(performance.now() - startedAt)
    }
    expect(Math.min(...tookMs)).toBeLessThan(2_000)
  })
})
