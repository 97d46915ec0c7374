/** Attacks by a caller that takes too much time, memory or connections. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Belfry, createBelfry } from '../../../src/belfry.js'
import { silentLogger } from '../../../src/core/logger.js'
import { type BelfryServer, createServer, problem } from '../../../src/server/index.js'
import type { Caller } from '../../../src/server/security/caller.js'
import { memory } from '../../../src/stores/memory/index.js'
import { outcome } from './secured-service.js'

let belfry: Belfry
let server: BelfryServer
let caller: Caller
let isKnown = true

beforeEach(async () => {
  belfry = createBelfry({ store: memory(), roles: [], logger: silentLogger })
  await belfry.start()
  caller = { name: 'ana', role: 'operator' }
  isKnown = true
  server = createServer(belfry, {
    authorise: async () => {
      if (!isKnown) throw problem(401, 'UNAUTHENTICATED', 'who is that?')
      return caller
    },
    limits: { batch: 20, bodyMs: 300 },
    logger: silentLogger,
  })
})

afterEach(async () => {
  await server.close()
  await belfry.stop()
})

interface Sent {
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

function ask(path: string, { method = 'GET', body, headers = {}, signal }: Sent = {}): Promise<Response> {
  const isStream = body instanceof ReadableStream
  const sent = body === undefined ? {} : { body: isStream ? body : JSON.stringify(body) }
  return server.fetch(
    new Request(`http://any.example${path}`, {
      ...{ method, headers: { 'content-type': 'application/json', ...headers }, ...sent },
      ...(isStream ? { duplex: 'half' } : {}),
      ...(signal === undefined ? {} : { signal }),
    }),
  )
}

function importing(body: ReadableStream<Uint8Array>, query = ''): Promise<Response> {
  return ask(`/v1/schedules:import${query}`, {
    ...{ method: 'POST', body, headers: { 'content-type': 'application/x-ndjson' } },
  })
}

function line(id: string, payload: unknown = null): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify({ id, every: '1h', job: 'x', payload })}\n`)
}

/** Sends these parts and then stalls for ever. */
function neverEnding(...parts: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
    },
  })
}

describe('a body that never completes', () => {
  it('times out in a mounted handler too, without Belfry’s own listener', async () => {
    const response = await ask('/v1/schedules', { method: 'POST', body: neverEnding(new Uint8Array([0x7b])) })
    expect(await outcome(response)).toBe('408 BODY_TOO_SLOW')
  })

  it('times out when an import stalls, and the answer says how far it got', async () => {
    const response = await importing(neverEnding(...Array.from({ length: 1_001 }, (_, at) => line(`s${at}`))))
    expect(response.status).toBe(408)
    expect(await response.json()).toMatchObject({ code: 'BODY_TOO_SLOW', taken: 1_000, nextLine: 1_001 })
  })
})

describe('an import', () => {
  it('writes long lines in smaller batches, to bound its memory', async () => {
    const most = { held: 0 }
    const put = belfry.schedules.putMany.bind(belfry.schedules)
    vi.spyOn(belfry.schedules, 'putMany').mockImplementation((entries) => {
      most.held = Math.max(most.held, [...entries].length)
      return put(entries)
    })
    let sent = 0
    const long = 'x'.repeat(200_000)
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1
        if (sent > 40) controller.close()
        else controller.enqueue(line(`s${sent}`, long))
      },
    })
    expect(await (await importing(body)).json()).toMatchObject({ created: 40, refused: 0 })
    expect(most.held).toBeLessThanOrEqual(6)
  })

  it('counts lines up to the largest safe integer', async () => {
    const far = await importing(neverEnding(), '?name=n&firstLine=9007199254740991')
    expect(await outcome(far)).toBe('400 REQUEST_INVALID')
    expect(await outcome(await ask('/v1/schedules:import?name=n'))).toBe('404 NOT_FOUND')
  })

  it('ends when its token is revoked, and so does an export', { timeout: 20_000 }, async () => {
    const more = new AbortController()
    let sent = 0
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 50))
        sent += 1
        if (!more.signal.aborted) controller.enqueue(line(`s${sent}`))
      },
    })
    for (let at = 0; at < 1_500; at += 1) await belfry.schedules.put(`e${at}`, { every: '1h', job: 'x' })
    const exported = (await ask('/v1/schedules:export')).body?.getReader()
    expect((await exported?.read())?.done).toBe(false)
    const response = importing(body)
    isKnown = false
    expect(await outcome(await response)).toBe('401 UNAUTHENTICATED')
    more.abort()
    await expect(exported?.read()).rejects.toThrow('revoked')
  })
})

describe('a lock', () => {
  const path = '/v1/locks/deploy'
  const acquire = (holder: string) => ask(path, { method: 'PUT', body: { ttl: '1m', holder } })

  it('cannot be acquired by its holder’s name, nor renewed or released by its token alone', async () => {
    const { token } = (await (await acquire('ana-1')).json()) as { token: number }
    caller = { name: 'eve', role: 'operator' }
    const seen = (await (await ask(path)).json()) as { holders: { holder: string; token: number }[] }
    expect(seen.holders).toMatchObject([{ holder: 'ana-1', token }])
    expect(await outcome(await acquire('ana-1'))).toBe('409 LOCK_BUSY')
    for (const holder of [undefined, 'ana-1']) {
      expect(await outcome(await ask(path, { method: 'PATCH', body: { token, holder } }))).toBe('409 LEASE_LOST')
      const query = `?token=${token}${holder === undefined ? '' : `&holder=${holder}`}`
      expect(await outcome(await ask(`${path}${query}`, { method: 'DELETE' }))).toBe('409 LEASE_LOST')
    }
    caller = { name: 'ana', role: 'operator' }
    expect(await (await acquire('ana-1')).json()).toMatchObject({ token })
    expect((await ask(path, { method: 'PATCH', body: { token } })).status).toBe(200)
    expect((await ask(`${path}?token=${token}`, { method: 'DELETE' })).status).toBe(204)
  })

  it('of a program cannot be released by a caller that saw its token', async () => {
    const held = await belfry.lock('deploy', { ttl: '1m' })
    const { holders } = (await (await ask(path)).json()) as { holders: { holder: string; token: number }[] }
    const { holder = '', token = 0 } = holders[0] ?? {}
    expect(await outcome(await acquire(holder))).toBe('409 LOCK_BUSY')
    expect(await outcome(await ask(`${path}?token=${token}`, { method: 'DELETE' }))).toBe('409 LEASE_LOST')
    expect(await held?.release()).toBe(true)
  })

  it.each([0, 1_000_001, 2 ** 31, 2 ** 53 - 1])('of %d permits is refused', async (permits) => {
    expect((await ask(path, { method: 'PUT', body: { permits } })).status).toBe(422)
  })
})

describe('a batch', () => {
  it('of runs is refused above the maximum size', async () => {
    for (let at = 0; at < 30; at += 1) await belfry.enqueue('x', at)
    const many = await ask('/v1/runs:cancel', { method: 'POST', body: { all: true, limit: 21 } })
    expect(await outcome(many)).toBe('413 BATCH_TOO_LARGE')
    const some = await ask('/v1/runs:cancel', { method: 'POST', body: { all: true } })
    expect(((await some.json()) as { changed: string[] }).changed).toHaveLength(20)
  })

  it('of schedule removals is refused above the maximum size, and changes nothing', async () => {
    await belfry.schedules.putMany(
      Array.from({ length: 21 }, (_, at) => [`s${at}`, { every: '1h', job: 'x' }] as const),
    )
    const prune = (prefix: string) =>
      ask('/v1/schedules:apply', { method: 'POST', body: { schedules: {}, prune: true, prefix } })
    expect(await outcome(await prune(''))).toBe('413 BATCH_TOO_LARGE')
    expect((await belfry.schedules.list({ limit: 100 })).items).toHaveLength(21)
    expect((await prune('s1')).status).toBe(200)
    expect((await belfry.schedules.list({ limit: 100 })).items).toHaveLength(10)
    caller = { name: 'root', role: 'admin' }
    const { data } = (await (await ask('/v1/audit')).json()) as { data: { detail: { removed: string[] } }[] }
    expect(data[0]?.detail.removed).toContain('s15')
  })
})

describe('long-lived requests', () => {
  it('are limited per caller, and other callers are not affected', async () => {
    const streams: Response[] = []
    for (let at = 0; at < 100; at += 1) streams.push(await ask('/v1/events'))
    expect(await outcome(await ask('/v1/events'))).toBe('429 RATE_LIMITED')
    caller = { name: 'bob', role: 'viewer' }
    const other = await ask('/v1/events')
    expect(other.status).toBe(200)
    caller = { name: 'ana', role: 'operator' }
    await streams[0]?.body?.cancel()
    const again = await ask('/v1/events')
    expect(again.status).toBe(200)
    const held = await belfry.lock('deploy', { ttl: '1m' })
    const waits = Array.from({ length: 1_001 }, () => ask('/v1/locks/deploy', { method: 'PUT', body: { wait: '60s' } }))
    const refused = await Promise.race(waits)
    expect(await outcome(refused)).toBe('429 RATE_LIMITED')
    await server.close()
    const answers = await Promise.all(waits)
    expect(answers.filter(({ status }) => status === 503)).toHaveLength(1_000)
    await held?.release()
  })
})

describe('closing', () => {
  it('ends requests that wait for a lock or a run, and leaves no lock behind', async () => {
    const held = await belfry.lock('deploy', { ttl: '1m' })
    const startedAt = performance.now()
    const locked = ask('/v1/locks/deploy', { method: 'PUT', body: { wait: '60s' } })
    const enqueued = ask('/v1/jobs/x/runs', { method: 'POST', body: { wait: '60s' } })
    await expect.poll(async () => (await belfry.runs.list()).items.length).toBe(1)
    await server.close()
    expect(await outcome(await locked)).toBe('503 STOPPING')
    expect((await enqueued).status).toBe(202)
    expect(performance.now() - startedAt).toBeLessThan(10_000)
    await held?.release()
    expect(await belfry.locks.inspect('deploy')).toEqual([])
  })
})

describe('a caller with a prefix', () => {
  it('sees live instances, but only those jobs that are within its prefix', async () => {
    const other = createBelfry({ store: memory(), roles: ['run'], logger: silentLogger })
    for (const job of ['shop/stock', 'billing/invoice']) other.job(job, { run: () => {} })
    await other.start()
    caller = { name: 'shop', role: 'viewer', prefix: 'shop/' }
    const { fetch } = createServer(other, { authorise: async () => caller, logger: silentLogger })
    const seen = await (await fetch(new Request('http://any.example/v1/instances'))).json()
    expect(seen).toMatchObject({ data: [{ live: true, jobs: ['shop/stock'] }] })
    await other.stop()
  })
})

describe('readiness probes without a token', () => {
  it('share one store read', async () => {
    let asked = 0
    const unreachableSinks = belfry.unreachableSinks.bind(belfry)
    belfry.unreachableSinks = () => {
      asked += 1
      return unreachableSinks()
    }
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask('/readyz')))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(asked).toBe(1)
  })
})
