/** A file that is deleted, moved away or replaced in use: processes notice, log it once, and start no run. */
import { copyFileSync, renameSync, rmSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import type { Logger } from '../../src/core/logger.js'
import type { Store } from '../../src/core/store.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { newRun, Scene } from '../../src/testing/contract/scene.js'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.js'
import { temporaryFile } from './temporary-file.js'

let clock: ManualClock
let file: ReturnType<typeof temporaryFile>
let store: Store

beforeEach(() => {
  clock = manualClock()
  file = temporaryFile()
  store = sqlite({ path: file.path, clock })
})

afterEach(async () => {
  await store.close()
  await file.remove()
})

function replace(): void {
  copyFileSync(file.path, `${file.path}.copy`)
  renameSync(`${file.path}.copy`, file.path)
}

describe('a store whose file', () => {
  it('was deleted refuses every call with STORE_MOVED', async () => {
    await store.open()
    await store.runs.enqueue([newRun()])
    rmSync(file.path)
    await clock.advance(1_000)
    const refused = { code: 'STORE_MOVED', message: expect.stringContaining('was deleted or moved away') }
    await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject(refused)
    await expect(store.runs.list({ limit: 1 })).rejects.toMatchObject(refused)
  })

  it('was replaced refuses every call with STORE_MOVED', async () => {
    await store.open()
    replace()
    await clock.advance(1_000)
    await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject({
      code: 'STORE_MOVED',
      message: expect.stringContaining('was replaced by another'),
    })
  })

  it('was restored works again', async () => {
    await store.open()
    renameSync(file.path, `${file.path}.away`)
    await clock.advance(1_000)
    await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORE_MOVED' })
    renameSync(`${file.path}.away`, file.path)
    await clock.advance(1_000)
    await expect(store.runs.enqueue([newRun()])).resolves.toHaveLength(1)
  })

  it('was just replaced opens no transaction on the new file', async () => {
    const scene = new Scene({ store, elapse: clock.advance })
    await store.open()
    await scene.join()
    await scene.enqueue()
    const { id: run, token } = await scene.claimOne()
    replace()
    let begun = false
    const transaction = store.runs.transact?.({ run, token }, () => {
      begun = true
    })
    await expect(transaction).rejects.toMatchObject({ code: 'STORE_MOVED' })
    expect(begun).toBe(false)
  })
})

describe('an instance whose file was deleted', () => {
  const said: string[] = []
  const log: Logger = {
    debug() {},
    info() {},
    warn: (fields, message) => void said.push(`${(fields as { err?: { code?: string } }).err?.code}: ${message}`),
    error: (_, message) => void said.push(message),
  }
  let belfry: Belfry

  it('logs it once, gives up its runs, and starts no more', async () => {
    said.length = 0
    let started = 0
    let given: unknown
    belfry = createBelfry({ store, clock, logger: log, lease: '4s', poll: '500ms' })
    belfry.job('work', {
      run: ({ signal }) =>
        new Promise((_, reject) => {
          started += 1
          signal.addEventListener('abort', () => {
            given = signal.reason
            reject(signal.reason)
          })
        }),
    })
    belfry.schedule('work', { every: '1s', job: 'work', overlap: 'skip' })
    const unreachable: unknown[] = []
    belfry.on('store:unreachable', ({ error }) => unreachable.push(error))
    await belfry.start()
    await clock.advance(2_000)
    expect(started).toBe(1)
    rmSync(file.path)
    await clock.advance(20_000)
    expect(unreachable).toMatchObject([{ code: 'STORE_MOVED' }])
    expect(said.filter((line) => line.startsWith('STORE_MOVED: store unreachable'))).toHaveLength(1)
    expect(given).toMatchObject({ code: 'LEASE_LOST' })
    expect(started).toBe(1)
    const stopped = belfry.stop()
    await clock.advance(30_000)
    await stopped
  })
})
