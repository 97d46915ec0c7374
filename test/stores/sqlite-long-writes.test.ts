import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { NewRun } from '../../src/core/runs/run.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { temporaryFile } from './temporary-file.js'

const MANY = 10_000
const runs = Array.from({ length: MANY }, (_, at): NewRun => {
  return { target: { job: 'work' }, payload: { at }, origin: 'enqueue', priority: 0, keep: 'all' }
})

describe('a long write', () => {
  const opened: { close(): Promise<void> }[] = []
  let file: ReturnType<typeof temporaryFile>
  const open = () => {
    const store = sqlite({ path: file.path })
    opened.push(store)
    return store
  }

  beforeEach(() => {
    file = temporaryFile()
  })

  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close()
    await file.remove()
  })

  it('yields to the event loop, and shows nothing before its end', async () => {
    const [store, other] = [open(), open()]
    await store.open()
    await other.open()
    let done = false
    const enqueued = store.runs.enqueue(runs).finally(() => {
      done = true
    })
    let turns = 0
    for (; !done; turns += 1) {
      const seen = await other.runs.list({ limit: 1 })
      if (!done) expect(seen.items).toEqual([])
      await setImmediate()
    }
    expect(turns).toBeGreaterThan(3)
    expect(await enqueued).toHaveLength(MANY)
    // A read in the same process waits for the end of the write.
    const again = store.runs.enqueue(runs)
    await setImmediate()
    await setImmediate()
    const [, newest] = await Promise.all([again, store.runs.list({ limit: 1 })])
    expect(newest.items[0]?.payload).toEqual({ at: MANY - 1 })
  })

  it('that would be too long is refused, and nothing is written', async () => {
    const store = open()
    const one = runs[0] as NewRun
    await expect(store.runs.enqueue([...runs, one])).rejects.toThrow(/10001 runs at once are too many .* at most 10000/)
    expect((await store.runs.list({ limit: 1 })).items).toEqual([])
  })

  it('numbers its runs in order, with a separate id each', async () => {
    const store = open()
    const results = await store.runs.enqueue(runs.slice(0, 250))
    expect(new Set(results.map(({ run }) => run)).size).toBe(250)
    for (const at of [0, 99, 100, 249]) {
      expect((await store.runs.get(results[at]?.run ?? ''))?.payload).toEqual({ at })
    }
  })

  it('that throws half-way leaves nothing behind, and writes queued meanwhile are executed', async () => {
    const store = open()
    const bad = { ...runs[0], payload: { toJSON: () => JSON.parse('{') } } as unknown as NewRun
    const failing = store.runs.enqueue([...runs.slice(1), bad])
    await setImmediate()
    const beside = store.runs.enqueue([{ ...(runs[0] as NewRun), payload: 'beside' }])
    await expect(failing).rejects.toThrow()
    await beside
    const { items } = await store.runs.list({ limit: 10 })
    expect(items.map(({ payload }) => payload)).toEqual(['beside'])
  })
})
