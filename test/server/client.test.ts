import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { afterEach, describe, expect, it } from 'vitest'
import { type BelfryClient, createClient, ServiceError } from '../../src/client/index.js'
import { type Belfry, createBelfry, silentLogger } from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { type CheckedServer, checkedServer } from './checked-server.js'

const TRANSPORTS = {
  'in one process': async (server: CheckedServer) => ({
    client: createClient({ url: 'http://localhost/base', fetch: (request) => server.fetch(request) }),
    close: async () => {},
  }),
  'over a socket': async (server: CheckedServer) => {
    const http = createHttpServer(getRequestListener((request) => server.fetch(request)))
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
    const { port } = http.address() as AddressInfo
    return {
      client: createClient({ url: `http://127.0.0.1:${port}/base/` }),
      close: async () => {
        http.closeAllConnections()
        await new Promise((resolve) => http.close(resolve))
      },
    }
  },
}

describe.each(Object.entries(TRANSPORTS))('the client, %s', (_, open) => {
  let belfry: Belfry
  let server: CheckedServer
  let client: BelfryClient
  let close = async () => {}

  async function start(): Promise<void> {
    belfry = createBelfry({ store: memory(), logger: silentLogger })
    belfry.job('double', { run: ({ payload }) => Number(payload) * 2 })
    belfry.job('fails', { retry: { attempts: 1 }, run: () => Promise.reject(new Error('no')) })
    await belfry.start()
    server = await checkedServer(belfry, { basePath: '/base' })
    ;({ client, close } = await open(server))
  }

  afterEach(async () => {
    await server.close()
    await close()
    await belfry.stop()
  })

  it('creates, changes and removes schedules', async () => {
    await start()
    const made = await client.schedules.put('digest/eu ü', { cron: '0 9 * * *', job: 'double' }, { ifVersion: 0 })
    await expect(
      client.schedules.put('digest/eu ü', { every: '1h', job: 'double' }, { ifVersion: 0 }),
    ).rejects.toMatchObject({
      ...{ name: 'ServiceError', code: 'VERSION_CONFLICT', status: 412 },
    })
    expect(await client.schedules.get('digest/eu ü')).toEqual(made)
    expect(await client.schedules.get('nobody')).toBeUndefined()
    const patched = await client.schedules.patch('digest/eu ü', { priority: 3 }, { ifVersion: made.version })
    expect(patched.priority).toBe(3)
    expect((await client.schedules.pause('digest/eu ü', 'why')).pauseNote).toBe('why')
    expect((await client.schedules.resume('digest/eu ü')).state).toBe('active')
    const created = await client.schedules.create({ every: '1h', job: 'double' }, { idempotencyKey: 'k' })
    expect(await client.schedules.create({ every: '1h', job: 'double' }, { idempotencyKey: 'k' })).toEqual(created)
    const all: string[] = []
    for await (const { id } of client.schedules.all({ limit: 1 })) all.push(id)
    expect(all.sort()).toEqual([created.id, 'digest/eu ü'].sort())
    await client.schedules.remove(created.id)
    await expect(client.schedules.remove(created.id)).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' })
  })

  it('triggers, waits, lists ticks, and explains', async () => {
    await start()
    await client.schedules.put('x', { cron: '0 0 1 1 *', job: 'double', payload: 21 })
    const { run } = await client.schedules.trigger('x', { wait: '10s' })
    expect(run).toMatchObject({ state: 'succeeded', result: 42 })
    expect((await client.schedules.explain('x', '2001-01-01T00:00:00Z')).status).toBe('before-creation')
    const ticks = await client.schedules.ticks('x', { from: '2030-01-01T00:00:00Z', to: '2033-01-01T00:00:00Z' })
    expect(ticks.data).toHaveLength(4)
    expect((await client.schedules.preview({ schedule: { every: '1h' }, count: 3 })).data).toHaveLength(3)
    const range = { from: '2020-01-01T00:00:00Z', to: '2022-01-01T00:00:00Z' }
    expect((await client.schedules.backfill('x', range)).enqueued).toBe(3)
  })

  it('applies, imports and exports', async () => {
    await start()
    const applied = await client.schedules.apply({ schedules: { a: { every: '1h', job: 'double' } } })
    expect(applied.changes).toMatchObject([{ id: 'a', change: 'create' }])
    const lines = Array.from({ length: 12_000 }, (_, n) => ({ id: `i/${n}`, every: '1h', job: 'double' }))
    const imported = await client.schedules.import([...lines, { id: 'bad', cron: 'x', job: 'double' }], { name: 'n' })
    expect(imported).toMatchObject({
      taken: 12_001,
      created: 12_000,
      refused: 1,
      errors: [{ line: 12_001, id: 'bad' }],
    })
    expect(await client.schedules.importProgress('n')).toMatchObject({ nextLine: 12_002, done: true })
    expect(await client.schedules.importProgress('other')).toBeUndefined()
    const text = await new Response(await client.schedules.export({ prefix: 'i/1' })).text()
    expect(text.trim().split('\n').length).toBe(lines.filter(({ id }) => id.startsWith('i/1')).length)
  })

  it('enqueues, cancels and retries runs', async () => {
    await start()
    const { run } = await client.jobs.enqueue('double', { payload: 4, wait: '10s', idempotencyKey: 'once' })
    expect(run?.result).toBe(8)
    const failed = await client.jobs.enqueue('fails', { wait: '10s' })
    expect((await client.runs.list({ state: ['failed', 'cancelled'] })).data).toMatchObject([{ id: failed.runId }])
    expect((await client.runs.retryMany({ job: 'fails' })).changed).toEqual([failed.runId])
    const later = await client.jobs.enqueue('double', { in: '1h' })
    expect(await client.runs.cancel(later.runId ?? '')).toEqual({ outcome: 'cancelled' })
    expect((await client.runs.get(later.runId ?? ''))?.state).toBe('cancelled')
    expect(await client.runs.get('nobody')).toBeUndefined()
    expect((await client.jobs.list()).data.map(({ name }) => name)).toEqual(['double', 'fails'])
  })

  it('acquires and releases locks', async () => {
    await start()
    const lease = await client.locks.acquire('a', { ttl: '1m' })
    if (lease === undefined) throw new Error('it was free')
    expect(await client.locks.acquire('a')).toBeUndefined()
    expect((await client.locks.renew('a', lease, '2m'))?.token).toBe(lease.token)
    expect((await client.locks.get('a')).holders).toHaveLength(1)
    expect(await client.locks.release('a', lease)).toBe(true)
    expect(await client.locks.release('a', lease)).toBe(false)
    expect(await client.locks.acquire('a')).toBeDefined()
    expect(await client.locks.reset('a')).toEqual({ reset: 1 })
    expect(await client.locks.renew('a', { token: 1 })).toBeUndefined()
  })

  it('freezes, thaws, and reads the status', async () => {
    await start()
    expect((await client.freeze('why')).note).toBe('why')
    expect((await client.frozen()).frozen).toBe(true)
    expect((await client.stats()).freeze.frozen).toBe(true)
    expect((await client.thaw()).frozen).toBe(false)
    expect((await client.instances()).data).toMatchObject([{ id: belfry.instance }])
    expect((await client.audit()).data.map(({ action }) => action)).toEqual(['thaw', 'freeze'])
  })

  it('receives events', async () => {
    await start()
    const gone = new AbortController()
    const heard: string[] = []
    for await (const event of client.events({ signal: gone.signal })) {
      heard.push(event.type === 'run' ? `run ${event.run.job} ${event.run.state}` : event.type)
      if (event.type === 'ready') await belfry.enqueue('double', 1)
      if (event.type === 'run' && event.run.state === 'succeeded') gone.abort()
    }
    expect(heard[0]).toBe('ready')
    expect(heard.at(-1)).toBe('run double succeeded')
  })

  it('reports validation errors field by field', async () => {
    await start()
    const wrong = client.schedules.put('x', { cron: '61 * * * *', job: 'double' })
    await expect(wrong).rejects.toBeInstanceOf(ServiceError)
    await expect(wrong).rejects.toMatchObject({ problem: { errors: [{ pointer: '/cron' }] } })
  })
})

it('sends no request for an empty id', async () => {
  const asked: string[] = []
  const client = createClient({
    url: 'http://x',
    fetch: async ({ url }) => Response.json(asked.push(url), { headers: MARK }),
  })
  for (const name of ['', '.', '..']) {
    const nameless = { code: 'NAME_INVALID', message: `"${name}" is not allowed as a name` }
    await expect(client.runs.cancel(name)).rejects.toMatchObject(nameless)
    await expect(client.schedules.remove(name)).rejects.toMatchObject(nameless)
  }
  expect(asked).toEqual([])
  await client.schedules.get('../..')
  expect(asked).toEqual(['http://x/v1/schedules/..%2F..'])
})

const MARK = { 'belfry-api': '1' }
const ready = () => new Response('event: ready\ndata: {}\n\n', { headers: MARK })

it('reports a broken event stream once, while it reconnects', async () => {
  const answers = [ready(), undefined, ready()]
  const client = createClient({
    url: 'http://x',
    fetch: async () => answers.shift() ?? Promise.reject(new TypeError('fetch failed')),
  })
  const heard: string[] = []
  for await (const { type } of client.events({ onLost: () => heard.push('lost') })) {
    heard.push(type)
    if (answers.length === 0) break
  }
  expect(heard).toEqual(['ready', 'lost', 'ready'])
})

it('distinguishes an unreachable service from a refusal', async () => {
  const client = createClient({ url: 'http://127.0.0.1:1' })
  await expect(client.stats()).rejects.toMatchObject({ code: 'UNREACHABLE', status: 0 })
  const odd = createClient({
    url: 'http://x',
    token: 't',
    fetch: async (request) => new Response(request.headers.get('authorization'), { status: 502 }),
  })
  await expect(odd.stats()).rejects.toMatchObject({ code: 'NOT_BELFRY', status: 502 })
})
