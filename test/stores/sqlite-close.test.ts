import { readdirSync, readlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import type { Store } from '../../src/core/store.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { newRun, Scene } from '../../src/testing/contract/scene.js'
import { collectGarbage } from '../collect-garbage.js'
import { temporaryFile } from './temporary-file.js'

let file: ReturnType<typeof temporaryFile>

beforeEach(() => {
  file = temporaryFile()
})

afterEach(() => file.remove())

/** This process's open handles of the file: the database, its log, its shared memory. */
function openHandles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`)
      return target.startsWith(file.path) ? [target] : []
    } catch {
      return []
    }
  })
}

async function use(store: Store): Promise<void> {
  const scene = new Scene({ store, elapse: async () => {} })
  await store.open()
  await scene.join()
  await store.runs.enqueue([newRun()])
  const run = await scene.claimOne()
  await store.runs.transact?.({ run: run.id, token: run.token }, () => 'done')
  await scene.settle(run)
}

/** `node:sqlite` closes a file at once. libsql closes it when the last of its statements is garbage-collected. */
const endsAtOnce = process.versions.sqlite !== undefined

describe('a lock', () => {
  it('can be released after its instance has stopped: the stop released it', async () => {
    const belfry = createBelfry({ store: sqlite({ path: file.path }) })
    const lock = await belfry.lock('invoice')
    await belfry.stop()
    expect(await lock?.release()).toBe(false)
  })
})

describe.runIf(process.platform === 'linux')('a SQLite store that is closed', () => {
  it('has no open handle of the file, at the latest after garbage collection', async () => {
    const store = sqlite({ path: file.path })
    await use(store)
    expect(openHandles()).not.toEqual([])
    await store.close()
    if (!endsAtOnce) await collectGarbage()
    expect(openHandles()).toEqual([])
  })

  it('leaves a file that can be deleted and recreated at once', async () => {
    const store = sqlite({ path: file.path })
    await use(store)
    await store.close()
    await file.remove()
    file = temporaryFile()
    const again = sqlite({ path: file.path })
    await use(again)
    await again.close()
  })
})
