import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/core/clock.js'
import { silentLogger } from '../../src/core/logger.js'
import type { ClaimedRun } from '../../src/core/store.js'
import { Attempt } from '../../src/engine/runs/attempt.js'
import { ThreadPool } from '../../src/engine/threads/thread-pool.js'
import { type Belfry, createBelfry, type JobOptions } from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { collectGarbage } from '../collect-garbage.js'

const DO = new URL('./handlers/do.js', import.meta.url)
const SOON = { timeout: 20_000, interval: 20 }
const closers: (() => Promise<void>)[] = []

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

function instance(options: Partial<Parameters<typeof createBelfry>[0]> = {}): Belfry {
  const belfry = createBelfry({ store: memory(), logger: silentLogger, ...options })
  closers.push(() => belfry.stop({ grace: 0 }))
  return belfry
}

function at(path: string): URL {
  return new URL(path, import.meta.url)
}

/** Writes a module to a temporary file. */
function written(name: string, text: string): URL {
  const file = join(mkdtempSync(join(tmpdir(), 'belfry-handler-')), name)
  writeFileSync(file, text)
  return pathToFileURL(file)
}

describe('a handler module that cannot run', () => {
  const missing = at('./handlers/missing.js')
  const source = written('resize.ts', 'export default async function resize() {}')
  it.each([
    ['is not there', missing, /handlers\/missing\.js cannot be loaded: .*; there is no such file: check the path/],
    ['was not compiled', new URL('./resize.js', source), /there is \S+\/resize\.ts: compile it, or see/],
    [
      'is in a language that needs a loader',
      written('a.tsx', ''),
      /this Node\.js reads no TypeScript in threads: compile it/,
    ],
    [
      'exports another name',
      at('./handlers/named.js'),
      /has no handler: it exports resize; write "export default async/,
    ],
    ['exports nothing', written('a.js', ''), /has no handler: it exports nothing/],
    ['exports data', written('a.mjs', 'export default 5'), /its default export is of type number/],
    ['throws', at('./handlers/broken.js'), /cannot be loaded: no configuration; the error is in this module or in/],
    ['ends its thread', written('a.mjs', 'process.exit(4)'), /has ended with exit code 4/],
  ])('is refused at the start: it %s', async (_, run, message) => {
    const belfry = instance()
    belfry.job('resize', { run })
    await expect(belfry.start()).rejects.toMatchObject({
      code: 'HANDLER_INVALID',
      message: expect.stringMatching(message),
    })
    await expect(belfry.start()).rejects.toThrow(/^job "resize": run: /)
  })

  it('is refused when the job is defined if it is not a file URL', () => {
    const define = (run: unknown) => () => instance().job('resize', { run } as JobOptions<unknown>)
    expect(define('./resize.js')).toThrow(/run must be a function, or the URL of a module: .*, not "\.\/resize\.js"/)
    expect(define(new URL('https://example.com/resize.js'))).toThrow(/only modules in files/)
  })

  it('does not affect an instance that does not run the job', async () => {
    const enqueuer = instance({ roles: ['tick'] })
    enqueuer.job('resize', { run: missing })
    await enqueuer.start()
    const other = instance({ jobs: ['tell'] })
    other.job('resize', { run: missing })
    other.job('tell', { run: DO })
    await other.start()
  })
})

describe('the threads of an instance', () => {
  it('never exceed their maximum, whatever jobs share them', async () => {
    const belfry = instance({ concurrency: 10, threads: { max: 2 } })
    const jobs = ['one', 'other'].map((name) => belfry.job<object>(name, { run: DO }))
    const running = { now: 0, most: 0 }
    belfry.on('run:started', () => {
      running.now += 1
      running.most = Math.max(running.most, running.now)
    })
    belfry.on('run:succeeded', () => {
      running.now -= 1
    })
    await belfry.start()
    const payloads = Array.from({ length: 8 }, () => ({ payload: { do: 'wait', ms: 20 } }))
    await Promise.all(jobs.map((job) => job.enqueueMany(payloads)))
    await expect.poll(async () => (await belfry.runs.list({ state: 'succeeded' })).items.length, SOON).toBe(16)
    expect(running.most).toBe(2)
  })

  it('count towards its concurrency', async () => {
    const belfry = instance({ concurrency: 3, threads: { max: 2 } })
    const running = { now: 0, most: 0 }
    belfry.on('run:started', () => {
      running.now += 1
      running.most = Math.max(running.most, running.now)
    })
    belfry.on('run:succeeded', () => {
      running.now -= 1
    })
    const inThreads = belfry.job<object>('threads', { run: DO })
    const here = belfry.job<object>('here', { run: () => new Promise((resolve) => setTimeout(resolve, 20)) })
    await belfry.start()
    const payloads = Array.from({ length: 10 }, () => ({ payload: { do: 'wait', ms: 20 } }))
    await Promise.all([inThreads.enqueueMany(payloads), here.enqueueMany(payloads)])
    await expect.poll(async () => (await belfry.runs.list({ state: 'succeeded' })).items.length, SOON).toBe(20)
    expect(running.most).toBe(3)
  })

  it('are refused in invalid numbers', () => {
    expect(() => instance({ threads: { max: 0 } })).toThrow('threads.max is 0: it must be a whole number of at least 1')
    expect(() => instance({ threads: { memoryMb: 1 } })).toThrow('threads.memoryMb is 1')
    expect(() => instance({ threads: { memory: 64 } as object })).toThrow('"memory" is not an option')
  })
})

const RUN: ClaimedRun = {
  ...{ id: '1', target: { job: 'j' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all', state: 'running' },
  ...{ createdAt: 0, readyAt: 0, attempt: 1, failures: 0, takeovers: 0, token: 1, startedAt: 0 },
}

function pool(idleMs: number) {
  const threads = new ThreadPool({ clock: systemClock, log: silentLogger, idleMs, memoryMb: undefined })
  closers.push(() => threads.close())
  const tell = (payload: unknown = { do: 'tell' }) =>
    threads.run({ attempt: new Attempt(RUN, systemClock), job: 'j', module: DO, payload, log: silentLogger })
  return { threads, tell }
}

describe('a pool of threads', () => {
  it('starts threads when needed, and ends idle ones', async () => {
    const { threads, tell } = pool(100)
    expect(threads.size).toBe(0)
    const runs = [tell(), tell(), tell()]
    expect(threads.size).toBe(3)
    await Promise.all(runs)
    await expect.poll(() => threads.size, SOON).toBe(0)
    const another = tell()
    expect(threads.size).toBe(1)
    await another
  })

  it('reuses a thread, and keeps nothing of earlier runs', async () => {
    const { threads, tell } = pool(60_000)
    const heapAfter = async (runs: number) => {
      for (let run = 0; run < runs; run += 1) await tell({ do: 'tell', text: 'x'.repeat(1_000) })
      await collectGarbage()
      return process.memoryUsage().heapUsed
    }
    const warm = await heapAfter(1_000)
    const later = await heapAfter(4_000)
    expect(later - warm).toBeLessThan(4_000_000)
    const { heap } = (await tell({ do: 'heap' })) as { heap: number }
    expect(heap).toBeLessThan(64_000_000)
    expect(threads.size).toBe(1)
  })
})
