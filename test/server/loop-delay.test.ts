/**
 * No request keeps the event loop from turning for long, however much the store holds. The size is that of a small service;
 * `npm run test:million` has a million schedules and runs in each store.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { silentLogger } from '../../src/core/logger.js'
import { type BelfryServer, createServer } from '../../src/server/index.js'
import { tokenAuthorise } from '../../src/server/security/authorise.js'
import { Tokens } from '../../src/server/security/tokens.js'
import { type Asked, walk } from './loop-walk.js'
import { openedStores } from './security/opened-stores.js'

const SIZE = Number(process.env.BELFRY_LOOP_SIZE ?? 5_000)
const MOST_MS = 50
const BATCH = 5_000
const UNLIMITED = { perSecond: 1e9, burst: 1e9 }
/** For this long an operation and a stream of events are watched. */
const WATCHED_MS = SIZE > 100_000 ? 3_000 : 100

interface Block {
  /** CPU time of this process between two turns of its event loop: on a busy machine the whole process waits. */
  cpuMs: number
  wallMs: number
}

/** The longest time for which the event loop did not turn while the work was done. */
async function longestBlock(work: () => Promise<unknown>): Promise<Block> {
  const most: Block = { cpuMs: 0, wallMs: 0 }
  let [cpu, at] = [process.cpuUsage(), performance.now()]
  const look = () => {
    const { user, system } = process.cpuUsage(cpu)
    most.cpuMs = Math.max(most.cpuMs, (user + system) / 1_000)
    most.wallMs = Math.max(most.wallMs, performance.now() - at)
    ;[cpu, at] = [process.cpuUsage(), performance.now()]
  }
  const timer = setInterval(look, 1)
  await new Promise((resolve) => setTimeout(resolve, 5))
  Object.assign(most, { cpuMs: 0, wallMs: 0 })
  await work()
  await new Promise((resolve) => setTimeout(resolve, 5))
  clearInterval(timer)
  return most
}

const STORES = Object.entries(openedStores)
  .filter(([name]) => name !== 'redis in shards')
  .map(([store, open]) => ({ store, open }))

describe.each(STORES)('on $store', ({ store, open }) => {
  let belfry: Belfry
  let server: BelfryServer
  let tenant = ''
  let requests: readonly Asked[] = []
  let runs: string[] = []
  let sent = 0
  const cancelled: string[] = []
  const blocks: string[] = []
  let close = async () => {}

  beforeAll(async () => {
    const opened = await open()
    close = opened.close
    belfry = createBelfry({ store: opened.store, roles: [], logger: silentLogger })
    const job = belfry.job<number>('mail', { run: () => {} })
    await belfry.start()
    for (let at = 0; at < SIZE; at += BATCH) {
      const numbers = Array.from({ length: Math.min(BATCH, SIZE - at) }, (_, index) => at + index)
      const entries = numbers.map((number) => [`user/${number}`, { cron: '0 9 * * *', job: 'mail' }] as const)
      await belfry.schedules.putMany(entries)
      await job.enqueueMany(numbers.map((payload) => ({ payload })))
    }
    runs = (await belfry.runs.list({ limit: 500 })).items.map(({ id }) => id)
    const authorise = tokenAuthorise(belfry.records, {
      open: true,
      rates: { token: UNLIMITED, address: UNLIMITED, guesses: UNLIMITED, logins: UNLIMITED },
    })
    const limits = { cpuMsPerSecond: 1e9, requestsPerSecond: 1e9, bodyBytes: 2 ** 21 }
    server = createServer(belfry, { authorise, limits, logger: silentLogger })
    const quota = { schedules: 100_000, runs: 100_000, locks: 1_000 }
    const made = await new Tokens(belfry.records).create({ role: 'operator', prefix: 'user/99', jobs: ['*'], quota })
    tenant = made.token
    const held = await send({ method: 'PUT', path: '/v1/locks/held', body: { ttl: '1h' } })
    requests = walk(((await held.json()) as { token: number }).token)
  }, 3_600_000)

  afterAll(async () => {
    if (process.env.BELFRY_LOOP_SHOW !== undefined) console.log(blocks.join('\n'))
    await server.close()
    await belfry.stop()
    await close()
  }, 60_000)

  function send({ method, path, body, headers = {}, asTenant = false }: Asked): Promise<Response> {
    const text = typeof body === 'string' ? body : JSON.stringify(body)?.replace('{n}', String(sent))
    sent += 1
    return server.fetch(
      new Request(`http://localhost${path.replace('{n}', String(sent))}`, {
        method,
        headers: {
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(asTenant ? { authorization: `Bearer ${tenant}` } : {}),
          ...headers,
        },
        ...(text === undefined ? {} : { body: text }),
      }),
    )
  }

  /** Asks, and reads the whole answer. Operations are watched until they end, and cancelled if that is not soon. */
  async function ask(asked: Asked): Promise<number> {
    const response = await send({ ...asked, path: withRun(asked.path) })
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
    const reader = response.body?.getReader()
    if (isStream) setTimeout(() => void reader?.cancel(), WATCHED_MS)
    while (reader !== undefined && !(await reader.read()).done);
    const operation = response.headers.get('location')
    if (operation?.includes('/operations/')) await watchOperation(operation)
    return response.status
  }

  function withRun(path: string): string {
    if (path.includes('{seen}')) return path.replace('{seen}', cancelled.pop() ?? 'none')
    if (!path.includes('{run}')) return path
    const run = path.endsWith('/cancel') ? (runs.pop() ?? 'none') : (runs[0] ?? 'none')
    if (path.endsWith('/cancel')) cancelled.push(run)
    return path.replace('{run}', run)
  }

  async function watchOperation(path: string): Promise<void> {
    const giveUpAt = performance.now() + WATCHED_MS
    for (let isCancelled = false; ; ) {
      const { state } = (await (await send({ method: 'GET', path })).json()) as { state: string }
      if (state !== 'running') return
      if (performance.now() > giveUpAt && !isCancelled) {
        isCancelled = true
        await send({ method: 'POST', path: `${path}/cancel` })
      }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  it('the walk has a request to each route', async () => {
    const { paths } = (await (await send({ method: 'GET', path: '/openapi.json' })).json()) as { paths: object }
    const routes = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => ({
        name: `${method.toUpperCase()} ${path}`,
        pattern: new RegExp(`^${method} ${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`, 'i'),
      })),
    )
    const asked = requests.map(({ method, path }) => `${method} ${path.split('?')[0]}`)
    const missed = routes.filter(({ pattern }) => !asked.some((request) => pattern.test(request)))
    expect(missed.map(({ name }) => name)).toEqual([])
  })

  it.each(
    walk(0).map(({ method, path, asTenant = false }, at) => ({
      name: `${method} ${path}${asTenant ? ' of a tenant' : ''}`,
      path,
      at,
    })),
  )('$name lets the event loop turn', { timeout: 600_000 }, async ({ name, path, at }) => {
    const asked = requests[at] as Asked
    // The first time also loads and compiles code.
    await ask({ ...asked, path: path.replace('limit=1000', 'limit=10') })
    // A collection of garbage or a compilation can fall into any one request: the least of five counts.
    let least: Block = { cpuMs: Number.POSITIVE_INFINITY, wallMs: Number.POSITIVE_INFINITY }
    for (let tries = 0; tries < 5 && least.cpuMs >= MOST_MS; tries += 1) {
      let status = 0
      const block = await longestBlock(async () => {
        status = await ask(asked)
      })
      expect(status).toBeGreaterThanOrEqual(asked.isRefused ? 400 : 200)
      expect(status).toBeLessThan(asked.isRefused ? 500 : 400)
      if (block.cpuMs < least.cpuMs) least = block
    }
    blocks.push(`LOOP ${store} ${name} ${Math.round(least.cpuMs)} (${Math.round(least.wallMs)})`)
    expect(least.cpuMs).toBeLessThan(MOST_MS)
  })
})
