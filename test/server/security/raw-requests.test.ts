/** Attacks over a plain socket. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { Tokens } from '../../../src/server/security/tokens.js'
import { seededRandom } from '../../../src/testing/index.js'
import { malformedRequest } from './malformed-request.js'
import { everything, type RawService, rawService, statusOf } from './raw-service.js'

let service: RawService | undefined

afterEach(() => service?.close())

function request(line: string, ...headers: string[]): string {
  return [`${line} HTTP/1.1`, ...headers, '', ''].join('\r\n')
}

const HOST = 'Host: 127.0.0.1'
const LAST = 'Connection: close'

describe('a body that arrives in one packet with its head', () => {
  it.each(['/v1/schedules:import', '/v1/schedules:im%70ort', '/v1/schedules:import?firstLine=1'])(
    'is accepted by %s',
    async (path) => {
      service = await rawService()
      const line = '{"id":"a","every":"1h","job":"work"}\n'
      const head = request(
        `POST ${path}`,
        ...[HOST, LAST, `Authorization: Bearer ${service.token}`, 'Content-Type: application/x-ndjson'],
        `Content-Length: ${line.length}`,
      )
      const answer = await service.send(head + line)
      expect(statusOf(answer)).toBe(200)
      expect(answer).toContain('"created":1')
      expect(await service.belfry.schedules.get('a')).toBeDefined()
    },
  )
})

describe('a raw request', () => {
  const cases: Record<string, [string, number[]]> = {
    'without a host': [request('GET /healthz', LAST), [400]],
    'with two hosts': [request('GET /v1/session', HOST, 'Host: evil.example', LAST), [400, 421]],
    'with a host of another site': [request('GET /v1/session', 'Host: evil.example', LAST), [421]],
    'for a whole URL of another site': [request('GET http://evil.example/v1/session', HOST, LAST), [421]],
    'for a whole URL, whose host is in the header': [
      request('GET http://127.0.0.1/v1/session', 'Host: evil.example', LAST),
      [421],
    ],
    'with a host that is not a name': [request('GET /v1/session', 'Host: 127.0.0.1/../', LAST), [400, 421]],
    'with a user in its host': [request('GET /v1/session', 'Host: a@127.0.0.1', LAST), [400, 421]],
    'with a length and chunks': [
      `${request('POST /v1/session', HOST, 'Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n`,
      [400],
    ],
    'with two lengths': [request('POST /v1/session', HOST, 'Content-Length: 5', 'Content-Length: 6'), [400]],
    'with a length below zero': [request('POST /v1/session', HOST, 'Content-Length: -1'), [400]],
    'with a header on two lines': [request('GET /v1/session', HOST, 'X: a', ' b', LAST), [200, 400]],
    'with a bare line feed in a header': [request('GET /v1/session', `${HOST}\nX-Admin: 1`, LAST), [400]],
    'with a zero byte in a header': [request('GET /v1/session', HOST, 'X: a\0b', LAST), [400]],
    'with a head of a megabyte': [request('GET /v1/session', HOST, `X: ${'x'.repeat(1_000_000)}`), [431]],
    'for a path of 60,000 characters': [request(`GET /${'x'.repeat(60_000)}`, HOST, LAST), [414, 431]],
    'for a path with dots': [request('GET /v1/schedules/../../healthz', HOST, LAST), [200, 400, 404]],
    'for a path with encoded dots': [request('GET /v1/schedules/%2e%2e%2f%2e%2e%2fetc%2fpasswd', HOST, LAST), [404]],
    'for a path with a zero byte': [request('GET /v1/schedules/a%00b', HOST, LAST), [400, 404, 422]],
    'for a path that is not UTF-8': [request('GET /v1/schedules/%ff%fe', HOST, LAST), [400]],
    'for a path with a truncated character': [request('GET /v1/schedules/%e2%82', HOST, LAST), [400]],
    'for a path with a line end': [request('GET /v1/schedules/a%0d%0aSet-Cookie:x=1', HOST, LAST), [400, 404, 422]],
    'for two slashes': [request('GET //evil.example/v1/session', HOST, LAST), [400, 404]],
    'for a path with a backslash': [request('GET /\\evil.example/v1/session', HOST, LAST), [400, 404]],
    'with an unknown method': [request('BREW /v1/session', HOST, LAST), [400]],
    'to trace': [request('TRACE /v1/session', HOST, LAST), [403, 404, 405]],
    'to become a proxy': [request('CONNECT evil.example:443', HOST), [0, 400, 404, 405]],
    'to upgrade the connection': [
      request('GET /v1/session', HOST, 'Connection: close, Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: x'),
      [200, 400, 404, 426],
    ],
    'of HTTP 2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400, 505]],
    'of HTTP 0.9': ['GET /v1/session\r\n\r\n', [400]],
    'with an unknown expectation': [request('POST /v1/session', HOST, 'Expect: a miracle', LAST), [417]],
    'with malformed chunks': [
      `${request('POST /v1/session', HOST, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}zz\r\n`,
      [400],
    ],
    'with a huge chunk size': [
      `${request('POST /v1/session', HOST, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}fffffffffffffffff\r\n`,
      [400],
    ],
  }

  it.each(Object.entries(cases))('%s gets the matching status, and changes nothing', async (_, [bytes, expected]) => {
    service = await rawService({ open: true, timings: { idleMs: 500, bodyMs: 1_000, headMs: 1_000 } })
    const before = await everything(service.belfry)
    const answer = await service.send(bytes, { waitMs: 5_000 })
    expect(expected).toContain(statusOf(answer) ?? 0)
    expect(answer).not.toMatch(/^set-cookie/im)
    expect(await everything(service.belfry)).toBe(before)
  })
})

describe('a slow client', () => {
  it('that stalls in the head is disconnected', async () => {
    service = await rawService({ timings: { headMs: 300 } })
    const answer = await service.send('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow', { waitMs: 10_000 })
    expect(statusOf(answer)).toBe(408)
  })

  it('that stalls in the body is disconnected', async () => {
    service = await rawService({ open: true, timings: { idleMs: 300 } })
    const head = request('POST /v1/schedules', HOST, 'Content-Type: application/json', 'Content-Length: 100')
    const answer = await service.send(`${head}{"every":`, { waitMs: 10_000 })
    expect(statusOf(answer)).toBe(408)
    await expect.poll(() => service?.listener.inFlight).toBe(0)
  })

  it('that sends the body in trickles is disconnected', async () => {
    service = await rawService({ open: true, timings: { idleMs: 2_000, bodyMs: 800 } })
    const socket = connect(service.port, '127.0.0.1')
    let answer = ''
    socket.on('data', (data) => {
      answer += String(data)
    })
    socket.on('error', () => {})
    socket.write(request('POST /v1/schedules', HOST, 'Content-Type: application/json', 'Content-Length: 100000'))
    const trickle = setInterval(() => socket.write(' '), 50)
    await once(socket, 'close')
    clearInterval(trickle)
    expect(statusOf(answer)).toBe(408)
    expect((await service.belfry.schedules.list()).items).toEqual([])
  })

  it('that does not read the answer is disconnected, and its resources are freed', { timeout: 20_000 }, async () => {
    service = await rawService({ open: true, timings: { stillMs: 400 } })
    const payload = 'x'.repeat(200_000)
    for (let at = 0; at < 100; at += 1) await service.belfry.schedules.put(`s${at}`, { every: '1h', job: 'x', payload })
    const socket = connect(service.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(request('GET /v1/schedules:export', HOST))
    await expect.poll(() => service?.listener.inFlight).toBe(1)
    // The client never reads: the answer fills the socket buffers and then stalls.
    await expect.poll(() => service?.listener.inFlight, { timeout: 15_000 }).toBe(0)
    socket.destroy()
  })

  it('does not delay others, nor do three hundred slow clients', { retry: 1 }, async () => {
    service = await rawService({ open: true, timings: { headMs: 3_000, idleMs: 3_000 } })
    const { port } = service
    const slow = Array.from({ length: 300 }, (_, at) => {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      socket.write(at % 2 === 0 ? 'GET /hea' : request('POST /v1/schedules', HOST, 'Content-Length: 10'))
      return socket
    })
    await sleep(50)
    const startedAt = performance.now()
    const answer = await service.send(request('GET /healthz', HOST, LAST))
    expect(statusOf(answer)).toBe(200)
    expect(performance.now() - startedAt).toBeLessThan(2_000)
    for (const socket of slow) socket.destroy()
  })

  it('without a token is refused before its body arrives', async () => {
    service = await rawService({ timings: { idleMs: 20_000, bodyMs: 20_000 } })
    const head = request('POST /v1/schedules', HOST, 'Content-Type: application/json', 'Content-Length: 100000')
    const startedAt = performance.now()
    expect(statusOf(await service.send(head, { waitMs: 15_000 }))).toBe(401)
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })
})

describe('a large body', () => {
  it('is refused by its Content-Length', async () => {
    service = await rawService({ open: true, bodyBytes: 1_000 })
    const head = request('PUT /v1/schedules/a', HOST, 'Content-Type: application/json', 'Content-Length: 1000000000000')
    expect(statusOf(await service.send(head, { waitMs: 5_000 }))).toBe(413)
  })

  it('is refused while it arrives in chunks', async () => {
    service = await rawService({ open: true, bodyBytes: 100_000 })
    const head = request('PUT /v1/schedules/a', HOST, 'Content-Type: application/json', 'Transfer-Encoding: chunked')
    const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
    expect(statusOf(await service.send(head + chunk.repeat(64), { waitMs: 5_000 }))).toBe(413)
  })
})

describe('behind a proxy', () => {
  const forwarded = 'X-Forwarded-For: 203.0.113.9, 10.0.0.7'

  it.each([
    ['that is not configured, X-Forwarded-For is ignored', [], 200],
    ['that is configured, the address is the last one before it', ['127.0.0.1', '10.0.0.0/8'], 401],
  ])('%s', async (_, proxies, status) => {
    // Without a token this service answers only local clients, so status 200 means that it took the client for local.
    service = await rawService({ open: true, proxies })
    expect(statusOf(await service.send(request('GET /v1/session', HOST, forwarded, LAST)))).toBe(status)
  })
})

describe('10,000 malformed requests', () => {
  it('are answered or disconnected, without a 500, a hang or a change', { timeout: 120_000 }, async () => {
    service = await rawService({
      rates: {
        address: { perSecond: 1_000_000, burst: 1_000_000 },
        guesses: { perSecond: 1_000_000, burst: 1_000_000 },
      },
      timings: { headMs: 2_000, idleMs: 1_000, bodyMs: 2_000 },
    })
    const { send, belfry } = service
    await belfry.schedules.put('billing/1', { every: '1h', job: 'invoice' })
    const tokens = new Tokens(belfry.records)
    const viewer = await tokens.create({ role: 'viewer' })
    const elsewhere = await tokens.create({ role: 'operator', prefix: 'elsewhere/' })
    const before = await everything(belfry)
    const random = seededRandom(7)
    const credentials = [
      'X-Nobody: 1',
      `Authorization: Bearer ${viewer.token}`,
      `Authorization: Bearer ${elsewhere.token}`,
    ] as const
    const requests = Array.from({ length: 10_000 }, () => malformedRequest(random, credentials))
    const statuses = new Map<number, number>()
    const worker = async () => {
      for (let bytes = requests.pop(); bytes !== undefined; bytes = requests.pop()) {
        // The client ends its side: an answer or a disconnect must follow, and no answer is a 5xx.
        const answer = await send(bytes, { end: true, waitMs: 15_000 })
        for (const [, status] of answer.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)) {
          statuses.set(Number(status), (statuses.get(Number(status)) ?? 0) + 1)
        }
        if (/^HTTP\/1\.1 5/m.test(answer))
          throw new Error(`answered by ${answer.slice(0, 300)}: ${JSON.stringify(bytes.toString('latin1'))}`)
      }
    }
    await Promise.all(Array.from({ length: 32 }, worker))
    expect(statuses.size).toBeGreaterThan(3)
    expect(await everything(belfry)).toBe(before)
    await expect.poll(() => service?.listener.inFlight, { timeout: 10_000 }).toBe(0)
    expect(statusOf(await send(request('GET /readyz', HOST, LAST)))).toBe(200)
  })
})
