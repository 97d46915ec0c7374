import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { temporaryFile } from '../stores/temporary-file.js'

const HOLDER = fileURLToPath(new URL('lock-holder.js', import.meta.url))

let file: ReturnType<typeof temporaryFile>
let child: ChildProcess | undefined

beforeEach(() => {
  file = temporaryFile()
})

afterEach(() => {
  child?.kill('SIGKILL')
  file.remove()
})

function holder(...args: readonly string[]) {
  const spawned = spawn(process.execPath, [HOLDER, file.path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  child = spawned
  let said = ''
  spawned.stdout.on('data', (part) => {
    said += part
  })
  return { said: () => said, ended: once(spawned, 'exit') }
}

describe('a process whose only work is a lock', () => {
  it('ends after it released the lock, long before the next renewal', async () => {
    const { said, ended } = holder('10m')
    expect(await ended).toEqual([0, null])
    expect(said()).toBe('held\nreleased\n')
  })

  it('stays alive while it holds the lock, and learns of its loss', async () => {
    const { said, ended } = holder('1s', 'keeps')
    await expect.poll(said, { timeout: 10_000 }).toBe('held\n')
    const belfry = createBelfry({ store: sqlite({ path: file.path }) })
    const [first] = await belfry.locks.inspect('a')
    const renewedUntil = async () => (await belfry.locks.inspect('a'))[0]?.expiresAt
    await expect.poll(renewedUntil, { timeout: 10_000 }).toBeGreaterThan((first?.expiresAt ?? 0) + 1_500)
    await belfry.locks.reset('a')
    expect(await ended).toEqual([0, null])
    expect(said()).toBe('held\nlost\n')
    await belfry.stop()
  })
})
