/**
 * How an instance without a beat thread recovers after its event loop was blocked. Tests run from source, where there
 * is no beat thread.
 */
import { describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import type { Logger } from '../../src/core/logger.js'
import { silentLogger } from '../../src/core/logger.js'
import { memory } from '../../src/stores/memory/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { temporaryFile } from '../stores/temporary-file.js'

const LEASE_MS = 600
const BLOCK_MS = 2_000

function block(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCK_MS)
}

function listener() {
  const lines: { readonly fields: object; readonly message: string }[] = []
  const logger: Logger = { ...silentLogger, warn: (fields, message) => void lines.push({ fields, message }) }
  return { lines, logger }
}

describe.each(['memory', 'sqlite'])('on %s, an instance whose event loop was blocked', (kind) => {
  it('beats before it gives anything up or takes anything over, and keeps its run and its lock', async () => {
    const { path, remove } = temporaryFile()
    const { lines, logger } = listener()
    const store = kind === 'memory' ? memory() : sqlite({ path })
    const belfry = createBelfry({ store, lease: LEASE_MS, logger })
    let begun = 0
    const job = belfry.job('block', {
      run: async ({ signal }) => {
        begun += 1
        const lock = await belfry.lock('held', { ttl: LEASE_MS })
        block()
        await new Promise((resolve) => setTimeout(resolve, LEASE_MS))
        const isKept = lock?.signal.aborted === false && (await lock.release())
        return { isKept, isAborted: signal.aborted }
      },
    })
    await belfry.start()
    const { instance } = belfry
    const { run } = await job.enqueue(undefined)
    const ended = async () => (await belfry.runs.get(run))?.state
    await expect.poll(ended, { timeout: 20_000 }).toBe('succeeded')
    expect(await belfry.runs.get(run)).toMatchObject({ attempt: 1, result: { isKept: true, isAborted: false } })
    expect(begun).toBe(1)
    expect(belfry.instance).toBe(instance)
    const delays = belfry.metrics.histograms().find(({ name }) => name === 'belfry_event_loop_delay_ms')?.value
    expect(delays?.sum).toBeGreaterThan(BLOCK_MS / 2)
    await belfry.stop()
    await remove()
    const warning = lines.find(({ message }) => message.includes('the event loop was blocked'))
    expect(warning?.fields).toMatchObject({ running: `block ${run}, lock "held"` })
    expect(warning?.message).toContain('docs/cpu-bound-jobs.md')
  })
})
