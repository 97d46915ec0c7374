/** Frequent queries must not read the history. */
import { expect, it } from 'vitest'
import { stats } from '../../src/api/health/stats.js'
import type { RunQuery } from '../../src/core/store.js'
import { newRun, Scene } from '../../src/testing/contract/scene.js'
import { freshRedis } from '../servers/fresh-redis.js'

const ENDED = 3_000

it('unfinished runs are found without reading finished ones', { timeout: 60_000 }, async () => {
  const { store, elapse, close } = await freshRedis()
  await store.open()
  const scene = new Scene({ store, elapse })
  await scene.join()
  const ended = await store.runs.enqueue(Array.from({ length: ENDED }, () => newRun()))
  await Promise.all(ended.map(({ run }) => store.runs.cancel(run)))
  await store.runs.enqueue([newRun(), newRun({ delayMs: 60_000 })])
  const running = await scene.claimOne()
  const listMs = async (query: Partial<RunQuery>) => {
    const startedAt = performance.now()
    const { items, next } = await store.runs.list({ limit: 1_000, ...query })
    expect(next).toBeUndefined()
    return { ms: performance.now() - startedAt, ids: items.map(({ id }) => id) }
  }
  const least = { open: Number.POSITIVE_INFINITY, all: Number.POSITIVE_INFINITY }
  for (let turn = 0; turn < 5; turn += 1) {
    const open = await listMs({ states: ['running'] })
    expect(open.ids).toEqual([running.id])
    const all = await listMs({ job: 'nobody' })
    expect(all.ids).toEqual([])
    least.open = Math.min(least.open, open.ms)
    least.all = Math.min(least.all, all.ms)
  }
  expect(least.open).toBeLessThan(least.all / 3)
  expect(await stats(store)).toMatchObject({ running: { count: 1 }, ready: { count: 1 }, waiting: { count: 0 } })
  await store.close()
  await close()
})
