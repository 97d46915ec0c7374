/** Processes notice each other's changes at once. They poll once a minute here, so only a hint can be the cause. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { temporaryFile } from './temporary-file.js'

const OTHER = fileURLToPath(new URL('./other-process.js', import.meta.url))
/** A hint takes about 30 ms on an idle machine; a poll would take a minute. */
const SOON_MS = 5_000

let file: ReturnType<typeof temporaryFile>
const instances: Belfry[] = []

beforeEach(() => {
  file = temporaryFile()
})

afterEach(async () => {
  for (const belfry of instances.splice(0)) await belfry.stop({ grace: 0 })
  await file.remove()
})

function instance(): Belfry {
  const belfry = createBelfry({ store: sqlite({ path: file.path }), poll: '1m', lease: '4m' })
  instances.push(belfry)
  return belfry
}

class OtherProcess {
  readonly #child: ChildProcess
  readonly #lines: Interface

  constructor() {
    const child = spawn(process.execPath, [OTHER, file.path], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child = child
    this.#lines = createInterface({ input: child.stdout })
  }

  async ready(): Promise<void> {
    await once(this.#lines, 'line')
  }

  /** Executes a command, and returns the instant at which it was done, on the clock that both processes share. */
  async does(act: string): Promise<number> {
    this.#child.stdin?.write(`${act}\n`)
    const [at] = await once(this.#lines, 'line')
    return Number(at)
  }

  async end(): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.stdin?.end()
    await exited
  }
}

describe('another process', () => {
  it('starts another’s enqueued runs, ends cancelled ones and fires new schedules, without waiting for a poll', async () => {
    const belfry = instance()
    const started: { run: string; at: number }[] = []
    const aborted: number[] = []
    belfry.job('work', {
      run: ({ run, signal }) =>
        new Promise((_, reject) => {
          started.push({ run: run.id, at: Date.now() })
          signal.addEventListener('abort', () => {
            aborted.push(Date.now())
            reject(signal.reason)
          })
        }),
    })
    await belfry.start()
    const other = new OtherProcess()
    await other.ready()
    const soon = { timeout: SOON_MS, interval: 5 }

    const enqueuedAt = await other.does('enqueue')
    await expect.poll(() => started.length, soon).toBe(1)
    const cancelledAt = await other.does(`cancel ${started[0]?.run}`)
    await expect.poll(() => aborted.length, soon).toBe(1)
    await other.does('put')
    await expect.poll(() => started.length, soon).toBe(2)
    await other.end()
    // On an idle machine each of the two takes about 30 ms.
    expect((started[0]?.at ?? 0) - enqueuedAt).toBeLessThan(1_000)
    expect((aborted[0] ?? 0) - cancelledAt).toBeLessThan(1_000)
  })

  it('that waits for a run learns of its end', async () => {
    const [worker, waiter] = [instance(), instance()]
    let finish = () => {}
    const work = new Promise<void>((resolve) => {
      finish = resolve
    })
    worker.job('work', { run: () => work })
    const job = waiter.job('work', { run: () => null, concurrency: 1 })
    await worker.start()
    const { run } = await job.enqueue()
    const waited = waiter.runs.wait(run, { timeout: SOON_MS })
    await expect.poll(async () => (await waiter.runs.get(run))?.state).toBe('running')
    finish()
    expect(await waited).toMatchObject({ state: 'succeeded' })
  })
})

describe('hints', () => {
  it('do not bounce between idle processes', async () => {
    const stubborn = [instance(), instance()]
    let begun = 0
    for (const belfry of stubborn) {
      const job = belfry.job(`work-${begun}`, {
        run: () => {
          begun += 1
          return sleep(1_500)
        },
      })
      await belfry.start()
      const { run } = await job.enqueue()
      await expect.poll(() => begun).toBe(stubborn.indexOf(belfry) + 1)
      // Each instance has an attempt that ignores its abort signal. The heartbeat of one must not make the other beat.
      await belfry.runs.cancel(run)
    }
    await sleep(1_000)
    for (const belfry of stubborn) expect(operations(belfry, 'instances.beat')).toBeLessThan(6)
  })
})

function operations(belfry: Belfry, operation: string): number {
  const histograms = belfry.metrics.histograms()
  return histograms.find(({ labels }) => labels.operation === operation)?.value.count ?? 0
}
