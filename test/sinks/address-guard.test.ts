import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Delivery, Sink, SinkMessage, Undelivered } from '../../src/core/sink.js'
import { AddressGuard } from '../../src/sinks/webhook/address-guard.js'
import { webhook } from '../../src/sinks/webhook/index.js'
import { TestReceiver } from './receiver.js'

const message: SinkMessage = {
  ...{
    id: 'a-1',
    generated_at: '2026-01-01T00:00:00.000Z',
    schedule_id: 'a',
    payload: null,
    dedupeId: 'store/one',
    key: 'a',
  },
  ...{ attempt: 1, token: 7, startedAt: Date.UTC(2026, 0, 1) },
}

/** A receiver inside the network: it must never receive anything. */
let inside: TestReceiver

beforeAll(async () => {
  inside = await new TestReceiver().start()
})
afterAll(() => inside.stop())

async function send(sink: Sink, url: string): Promise<Delivery> {
  const [outcome] = await sink.deliver([{ ...message, options: { url } }], AbortSignal.timeout(5_000))
  return outcome as Delivery
}

function expectRefused(outcome: Delivery): void {
  expect(outcome).toMatchObject({ delivered: false, retryable: false, error: { code: 'ADDRESS_REFUSED' } })
}

describe('a webhook that tries to reach internal addresses', () => {
  const LITERALS = [
    ...['127.0.0.1', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.0.0.1', '0177.0.0.1', '017700000001'],
    ...['0', '0.0.0.0', '127.255.255.254', '①②⑦.⓪.⓪.①', '127。0。0。1', '%31%32%37.0.0.1', '127.0.0.1.'],
    ...['[::1]', '[::]', '[0:0:0:0:0:0:0:1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]'],
    ...['[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[2001::1]', '[fe80::1]', '[fc00::1]', '[fd00:ec2::254]', '[ff02::1]'],
    ...['10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', '169.254.169.254', '0xa9fea9fe'],
    ...['[::ffff:a9fe:a9fe]', '192.0.0.192', '198.18.0.1', '224.0.0.1', '255.255.255.255', '168.63.129.16'],
  ]

  it.each(LITERALS)('does not reach http://%s', async (host) => {
    const sink = webhook({})
    const url = `http://${host}:${inside.port}/`
    expect(() => sink.check?.({ url })).toThrow(expect.objectContaining({ code: 'ADDRESS_REFUSED' }))
    expectRefused(await send(sink, url))
    expect(() => webhook({ url })).toThrow(expect.objectContaining({ code: 'ADDRESS_REFUSED' }))
  })

  it.each([
    ['another protocol', 'file:///etc/passwd'],
    ['another protocol that speaks text', 'gopher://127.0.0.1:6379/_FLUSHALL'],
    ['a user name that looks like a host', 'http://example.com@127.0.0.1/'],
    ['a host that looks like a password', 'http://user:example.com@127.0.0.1/'],
    ['a backslash before the real host', 'http://example.com\\@127.0.0.1/'],
    ['a fragment before the real host', 'http://127.0.0.1#@example.com/'],
    ['no host at all', 'http:///'],
    ['nothing', ''],
    ['a number', 7],
  ])('is refused for %s', async (_, url) => {
    const sink = webhook({ resolve: async () => ['127.0.0.1'] })
    const outcome = await send(sink, url as string)
    expect(outcome).toMatchObject({ delivered: false, retryable: false })
  })

  it('is refused for a name that resolves to an internal address, also when only one of its addresses is internal', async () => {
    for (const addresses of [
      ['127.0.0.1'],
      ['8.8.8.8', '127.0.0.1'],
      ['::ffff:127.0.0.1'],
      ['fe80::1%eth0'],
      ['not an address'],
    ]) {
      const sink = webhook({ resolve: async () => addresses })
      expectRefused(await send(sink, `http://rebind.example:${inside.port}/`))
    }
    expectRefused(await send(webhook({}), `http://localhost:${inside.port}/`))
  })

  it('is refused for a name that resolved to a public address at first and to an internal one later', async () => {
    const asked: string[] = []
    const sink = webhook({
      // This address counts as public in the test; the second one does not.
      allow: ['127.0.0.1'],
      resolve: async (host) => {
        asked.push(host)
        return [asked.length === 1 ? '127.0.0.1' : '127.0.0.2']
      },
    })
    const url = `http://rebind.example:${inside.port}/`
    sink.check?.({ url })
    expect(asked).toEqual([])
    inside.answer(204, '', { connection: 'close' })
    expect(await send(sink, url)).toEqual({ delivered: true })
    inside.accept()
    expectRefused(await send(sink, url))
    expect(asked).toHaveLength(2)
  })

  it('connects to the checked address, and resolves the name once per connection', async () => {
    let asked = 0
    const sink = webhook({
      allow: ['127.0.0.1'],
      // A second lookup would return an address without a listener.
      resolve: async () => [asked++ === 0 ? '127.0.0.1' : '127.0.0.9'],
    })
    const before = inside.requests.length
    expect(await send(sink, `http://pinned.example:${inside.port}/one`)).toEqual({ delivered: true })
    expect(await send(sink, `http://pinned.example:${inside.port}/two`)).toEqual({ delivered: true })
    expect(inside.requests.slice(before).map(({ url, headers }) => [url, headers.host])).toEqual([
      ['/one', `pinned.example:${inside.port}`],
      ['/two', `pinned.example:${inside.port}`],
    ])
    expect(asked).toBe(1)
    await sink.close?.()
    expectRefused(await send(sink, `http://pinned.example:${inside.port}/three`))
  })

  it('does not follow a redirect', async () => {
    const redirecting = createServer((_, response) =>
      response.writeHead(307, { location: `http://127.0.0.2:${inside.port}/secret` }).end('elsewhere'),
    )
    const port = await listen(redirecting)
    const sink = webhook({ url: `http://127.0.0.1:${port}/`, allow: ['127.0.0.1'] })
    const before = inside.requests.length
    const [outcome] = await sink.deliver([message], AbortSignal.timeout(5_000))
    expect(outcome).toMatchObject({ delivered: false, error: { code: 'SINK_REFUSED', message: /307.*not followed/ } })
    expect(inside.requests.length).toBe(before)
    await sink.close?.()
    await new Promise((resolve) => redirecting.close(resolve))
  })

  it('never receives the sink’s credentials, nor an answer from inside', async () => {
    const other = await new TestReceiver().start()
    const sink = webhook({
      url: inside.url,
      headers: { authorization: 'Bearer secret' },
      allow: ['127.0.0.1'],
      overrides: { url: true },
    })
    await send(sink, other.url)
    expect(other.last.headers.authorization).toBeUndefined()
    await sink.deliver([message], AbortSignal.timeout(5_000))
    expect(inside.last.headers.authorization).toBe('Bearer secret')
    await sink.close?.()
    await other.stop()
    const named = await send(webhook({ resolve: async () => ['10.9.8.7'] }), 'http://intranet.example/')
    expect(String((named as Undelivered).error)).not.toContain('10.9.8.7')
  })

  it('cannot inject headers', () => {
    const sink = webhook({ url: 'https://example.com/', overrides: { headers: true } })
    const bad: readonly Record<string, unknown>[] = [
      { host: 'inside' },
      { 'x-a': 'b\r\nx-c: d' },
      { 'x a': 'b' },
      { 'Transfer-Encoding': 'chunked' },
      { 'webhook-signature': 'v1,mine' },
      { Authorization: 'Bearer secret' },
      { 'x-n': 7 },
    ]
    for (const headers of bad) {
      const code = expect.stringMatching(/^(OPTION_INVALID|OVERRIDE_REFUSED)$/)
      expect(() => sink.check?.({ headers } as never)).toThrow(expect.objectContaining({ code }))
    }
  })
})

describe('the address guard', () => {
  it('permits public addresses', () => {
    const guard = new AddressGuard([])
    const open = [
      '1.1.1.1',
      '8.8.8.8',
      '172.32.0.1',
      '192.167.255.255',
      '100.128.0.1',
      '2606:4700::1111',
      '::ffff:1.1.1.1',
    ]
    for (const address of [...open, '64:ff9b::101:101'])
      expect([address, guard.allows(address)]).toEqual([address, true])
  })

  it('permits exactly the allowed networks', () => {
    const guard = new AddressGuard(['10.1.0.0/16', 'fd00:1::/32', '192.168.0.7'])
    const allowed = ['10.1.255.1', '::ffff:10.1.0.1', 'fd00:1:2::3', '192.168.0.7']
    for (const address of allowed) expect([address, guard.allows(address)]).toEqual([address, true])
    const refused = ['10.2.0.1', 'fd00:2::1', '192.168.0.8', '127.0.0.1']
    for (const address of refused) expect([address, guard.allows(address)]).toEqual([address, false])
  })

  it.each(['10.0.0.0/33', 'localhost', '10.0.0/8', '::1/129', '10.0.0.0/', 'x/8', ''])(
    'refuses %j as a network',
    (network) => {
      expect(() => webhook({ url: 'https://example.com', allow: [network] })).toThrow(
        /neither an address nor a network/,
      )
    },
  )
})

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
