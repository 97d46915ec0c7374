/** Long work over HTTP: it is started, asked about, and cancelled. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { createClient, type OperationResource } from '../../src/client/index.js'
import { silentLogger } from '../../src/core/logger.js'
import type { Caller } from '../../src/server/security/caller.js'
import { memory } from '../../src/stores/memory/index.js'
import { type CheckedServer, checkedServer } from './checked-server.js'

const RANGE = { from: '2024-01-01T00:00:00Z', to: '2024-01-02T00:00:00Z' }
const TICKS = 86_401

let belfry: Belfry
let server: CheckedServer
let caller: Caller

beforeEach(async () => {
  belfry = createBelfry({ store: memory(), roles: [], logger: silentLogger })
  belfry.job('mail', { run: () => {} })
  await belfry.start()
  caller = { name: 'ana', role: 'operator' }
  server = await checkedServer(belfry, { authorise: async () => caller, logger: silentLogger })
})

afterEach(async () => {
  await server.close()
  await belfry.stop()
})

function client() {
  return createClient({ url: 'http://localhost', fetch: (request) => server.fetch(request) })
}

async function operation(id: string): Promise<OperationResource> {
  return (await server.ask(`/v1/operations/${id}`)).body as OperationResource
}

describe('a long backfill', () => {
  beforeEach(async () => {
    await belfry.schedules.put('s', { cron: '* * * * * *', job: 'mail' })
    // Each batch takes some time, as it does on a store across the network.
    const enqueue = belfry.schedules.backfill.bind(belfry.schedules)
    belfry.schedules.backfill = (id, options) =>
      enqueue(id, { ...options, onProgress: options.onProgress ?? (() => {}) })
  })

  it('is accepted, tells its progress, and enqueues all runs', { timeout: 60_000 }, async () => {
    const progress: number[] = []
    const onProgress = ({ counts }: OperationResource) => void progress.push(counts.enqueued ?? 0)
    const result = await client().schedules.backfill('s', RANGE, { onProgress })
    expect(result.enqueued).toBe(TICKS)
    expect((await client().schedules.backfill('s', RANGE)).duplicates).toBe(TICKS)
  })

  it('ends when it is cancelled, and a repetition adds the rest', { timeout: 60_000 }, async () => {
    const slow = belfry.schedules.backfill
    const isSlow = { now: true }
    belfry.schedules.backfill = async (id, options) => {
      const half = new Date(Date.parse(RANGE.from) + 1_000)
      if (!isSlow.now) return slow(id, options)
      const first = await slow(id, { ...options, name: `${RANGE.from}/${RANGE.to}`, to: half })
      await new Promise((resolve) => options.signal?.addEventListener('abort', resolve))
      options.signal?.throwIfAborted()
      return first
    }
    const started = await server.ask('/v1/schedules/s/backfill', { method: 'POST', body: { ...RANGE, name: 'n' } })
    expect([started.status, started.body.state, started.body.kind]).toEqual([202, 'running', 'backfill'])
    expect(started.headers.get('location')).toBe(`/v1/operations/${started.body.id}`)
    const cancelled = await server.ask(`/v1/operations/${started.body.id}/cancel`, { method: 'POST', body: {} })
    expect(cancelled.status).toBe(202)
    await expect.poll(async () => (await operation(started.body.id)).state).toBe('cancelled')
    expect((await operation(started.body.id)).counts).toMatchObject({ enqueued: 2 })
    isSlow.now = false
    const again = await client().schedules.backfill('s', RANGE)
    expect(again.enqueued + again.duplicates).toBe(TICKS)
  })

  it('that fails is answered with its error if it fails at once', async () => {
    const body = { ...RANGE, to: '2030-01-01T00:00:00Z' }
    expect((await server.ask('/v1/schedules/s/backfill', { method: 'POST', body })).status).toBe(422)
  })

  it('is interrupted when the service closes', async () => {
    belfry.schedules.backfill = async (_, { signal }) => {
      await new Promise((resolve) => signal?.addEventListener('abort', resolve))
      signal?.throwIfAborted()
      return { runs: [] }
    }
    const { body } = await server.ask('/v1/schedules/s/backfill', { method: 'POST', body: RANGE })
    await server.close()
    const record = await belfry.records.get('operation', body.id)
    expect(record?.body).toMatchObject({ state: 'interrupted' })
  })
})

describe('an operation on many', () => {
  it('cancels and retries all runs that match', async () => {
    for (let at = 0; at < 450; at += 1) await belfry.enqueue('mail', at)
    const operations = client().operations
    const { id } = await operations.start({ kind: 'cancel-runs', job: 'mail' })
    expect(await operations.wait(id)).toMatchObject({ state: 'succeeded', counts: { changed: 450, refused: 0 } })
    const retried = await operations.start({ kind: 'retry-runs', all: true, state: ['cancelled'] })
    expect(await operations.wait(retried.id)).toMatchObject({ state: 'succeeded', counts: { changed: 450 } })
  })

  it('pauses and resumes all schedules under a prefix', async () => {
    const entries = Array.from({ length: 450 }, (_, at) => [`user/${at}`, { every: '1h', job: 'mail' }] as const)
    await belfry.schedules.putMany([...entries, ['other', { every: '1h', job: 'mail' }]])
    const operations = client().operations
    const paused = await operations.start({ kind: 'pause-schedules', prefix: 'user/', note: 'moving' })
    expect(await operations.wait(paused.id)).toMatchObject({ state: 'succeeded', counts: { changed: 450 } })
    expect((await belfry.schedules.list({ state: 'paused', limit: 1_000 })).items).toHaveLength(450)
    const resumed = await operations.start({ kind: 'resume-schedules', prefix: 'user/' })
    expect(await operations.wait(resumed.id)).toMatchObject({ state: 'succeeded', counts: { changed: 450 } })
    expect((await belfry.schedules.list({ state: 'paused', limit: 1 })).items).toEqual([])
  })

  it('touches only what the caller may see, and other callers do not see it', async () => {
    await belfry.schedules.putMany([
      ['a/1', { every: '1h', job: 'mail' }],
      ['b/1', { every: '1h', job: 'mail' }],
    ])
    caller = { name: 'a', role: 'operator', prefix: 'a/' }
    const operations = client().operations
    const { id } = await operations.start({ kind: 'pause-schedules', prefix: '' })
    await operations.wait(id)
    caller = { name: 'b', role: 'operator', prefix: 'b/' }
    expect(await operations.get(id)).toBeUndefined()
    expect((await server.ask(`/v1/operations/${id}/cancel`, { method: 'POST', body: {} })).status).toBe(404)
    caller = { name: 'root', role: 'admin' }
    expect(await operations.get(id)).toMatchObject({ counts: { changed: 1 } })
    expect((await belfry.schedules.get('b/1'))?.state).toBe('active')
  })

  it('is refused to a viewer', async () => {
    caller = { name: 'eve', role: 'viewer' }
    const asked = { method: 'POST', body: { kind: 'cancel-runs', all: true } }
    expect((await server.ask('/v1/operations', asked)).status).toBe(403)
  })
})
