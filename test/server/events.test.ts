import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Caller } from '../../src/server/index.js'
import { createTestBelfry, type TestBelfry } from '../../src/testing/index.js'
import { type CheckedServer, checkedServer } from './checked-server.js'

interface Event {
  readonly event: string
  readonly id?: string
  // biome-ignore lint/suspicious/noExplicitAny: events of many shapes
  readonly data: any
}

class Listener {
  readonly events: Event[] = []
  isOver = false
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>

  constructor(response: Response) {
    if (response.body === null) throw new Error('there is no stream')
    this.#reader = response.body.getReader()
    void this.#read()
  }

  of(event: string): Event[] {
    return this.events.filter((each) => each.event === event)
  }

  leave(): Promise<void> {
    return this.#reader.cancel()
  }

  async #read(): Promise<void> {
    let text = ''
    const decoder = new TextDecoder()
    for (;;) {
      const { value, done } = await this.#reader.read()
      if (done) break
      text += decoder.decode(value, { stream: true })
      const parts = text.split('\n\n')
      text = parts.pop() ?? ''
      this.events.push(...parts.filter((part) => !part.startsWith(':')).map(parse))
    }
    this.isOver = true
  }
}

function parse(part: string): Event {
  const fields = Object.fromEntries(part.split('\n').map((line) => line.split(/: (.*)/s, 2))) as Record<string, string>
  const { event = '', id, data = '' } = fields
  return { event, data: JSON.parse(data), ...(id === undefined ? {} : { id }) }
}

let kit: TestBelfry
let server: CheckedServer
let caller: Caller

beforeEach(async () => {
  kit = createTestBelfry()
  kit.belfry.job('ok', { run: () => 1 })
  await kit.belfry.start()
  caller = { name: 'test', role: 'viewer' }
  server = await checkedServer(kit.belfry, { authorise: async () => caller })
})

afterEach(async () => {
  await server.close()
  await kit.belfry.stop()
})

async function listen(last?: string): Promise<Listener> {
  const headers = last === undefined ? {} : { 'last-event-id': last }
  const response = await server.fetch(new Request('http://localhost/v1/events', { headers }))
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  return new Listener(response)
}

describe('the stream of events', () => {
  it('has new and changed runs of all processes', async () => {
    const other = kit.instance()
    await other.start()
    await other.enqueue('later', null, { in: '10s' })
    const listener = await listen()
    await kit.clock.settle()
    expect(listener.events).toMatchObject([{ event: 'ready' }])
    const { run } = await other.enqueue('ok', { a: 1 }, { in: '3s' })
    await kit.advance('2s')
    expect(listener.of('run')).toMatchObject([{ data: { id: run, state: 'ready', job: 'ok' } }])
    await kit.advance('3s')
    expect(listener.of('run').at(-1)).toMatchObject({ data: { id: run, state: 'succeeded' } })
    await other.stop()
    await listener.leave()
  })

  it('continues after the last event that a client received', async () => {
    const first = await listen()
    await kit.belfry.enqueue('ok', 1)
    await kit.advance('2s')
    const seen = first.events.at(-1)?.id
    await first.leave()
    await kit.advance('1m')
    const { run } = await kit.belfry.enqueue('ok', 2)
    await kit.advance('1m')
    const second = await listen(seen)
    await kit.clock.settle()
    expect(second.of('run').at(-1)).toMatchObject({ data: { id: run, state: 'succeeded' } })
    expect(second.events.at(-1)?.event).toBe('ready')
    await second.leave()
  })

  it('says so when it dropped events', async () => {
    const before = String((await kit.belfry.now()).getTime())
    await kit.advance('1m')
    for (let n = 0; n < 1_100; n += 1) await kit.belfry.enqueue('later', n, { in: '1h' })
    const late = await listen(before)
    const odd = await listen('yesterday')
    for (const ahead of ['9999999999999999', '8640000000000001']) {
      const listener = await listen(ahead)
      await kit.clock.settle()
      expect(listener.events.map(({ event }) => event)).toEqual(['reset', 'ready'])
      await listener.leave()
    }
    await kit.clock.settle()
    expect(late.events.map(({ event }) => event)).toEqual(['reset', 'ready'])
    expect(odd.events[0]).toMatchObject({ event: 'reset', data: { reason: 'gap' } })
    for (let n = 0; n < 1_100; n += 1) await kit.belfry.enqueue('later', n, { in: '1h' })
    await kit.advance('2s')
    expect(late.events.at(-1)).toMatchObject({ event: 'reset' })
    const { run } = await kit.belfry.enqueue('later', 'one more', { in: '1h' })
    await kit.advance('2s')
    expect(late.events.at(-1)).toMatchObject({ event: 'run', data: { id: run } })
    await late.leave()
    await odd.leave()
  })

  it('shows a caller with a prefix only names that begin with it', async () => {
    caller = { name: 'team', role: 'viewer', prefix: 'team/' }
    const listener = await listen()
    await kit.belfry.enqueue('ok')
    const { run } = await kit.belfry.enqueue('team/job', null, { in: '1h' })
    await kit.advance('2s')
    expect(listener.of('run').map(({ data }) => data.id)).toEqual([run])
    await listener.leave()
  })

  it('has events of this process', async () => {
    const listener = await listen()
    const lock = await kit.belfry.lock('a', { ttl: '10s' })
    await kit.belfry.locks.reset('a')
    await lock?.extend('10s')
    await kit.clock.settle()
    expect(listener.of('instance')).toMatchObject([{ data: { event: 'lock:lost', name: 'a' } }])
    await listener.leave()
  })

  it('disconnects a client that does not read, and all clients when the server closes', async () => {
    const response = await server.fetch(new Request('http://localhost/v1/events'))
    const open = await listen()
    for (let n = 0; n < 2_000; n += 1) {
      await kit.belfry.enqueue('x'.repeat(255), null, { in: '1h', key: `${n}${'y'.repeat(250)}` })
      if (n % 500 === 0) await kit.advance('2s')
    }
    await kit.advance('2s')
    const text = await response.text()
    expect(text.length).toBeLessThan(1_100_000)
    expect(text.endsWith('event: reset\ndata: {"reason":"slow"}\n\n')).toBe(true)
    expect(open.isOver).toBe(false)
    await server.close()
    await kit.clock.settle()
    expect(open.isOver).toBe(true)
  })
})
