/** How a process ends that uses an instance and never starts it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { locationKinds, type StoreLocation } from './real-stores.js'

const UNSTARTED = fileURLToPath(new URL('unstarted.js', import.meta.url))

/** The connection that proves liveness, and those of a cluster, stay open until `stop()` and keep the process alive. */
const STAYS: ReadonlySet<string> = new Set(['postgres, advisory mode', 'redis cluster'])

let location: StoreLocation | undefined
let child: ChildProcess | undefined

afterEach(async () => {
  child?.kill('SIGKILL')
  await location?.remove()
})

function unstarted(mode: 'enqueue' | 'hold', { settings }: StoreLocation) {
  const spawned = spawn(process.execPath, [UNSTARTED, mode, ...settings], { stdio: ['ignore', 'pipe', 'inherit'] })
  child = spawned
  let said = ''
  spawned.stdout.on('data', (part) => {
    said += part
  })
  return { said: () => said, kill: () => spawned.kill('SIGTERM'), ended: once(spawned, 'exit') }
}

describe('a process that never starts its instance', () => {
  it.each(locationKinds.filter(({ name }) => !STAYS.has(name)))(
    'and never stops it exits when its work is done, on $name',
    async ({ make }) => {
      location = await make()
      const { said, ended } = unstarted('enqueue', location)
      expect(await ended).toEqual([0, null])
      expect(said()).toBe('enqueued\n')
    },
  )

  it.each(locationKinds.filter(({ name }) => name !== 'memory'))(
    'releases its lock on SIGTERM, with `signals: true`, on $name',
    async ({ make }) => {
      location = await make()
      const { said, kill, ended } = unstarted('hold', location)
      await expect.poll(said, { timeout: 20_000 }).toBe('held\n')
      const belfry = createBelfry({ store: location.handle() })
      expect(await belfry.lock('held')).toBeUndefined()
      kill()
      expect(await ended).toEqual([null, 'SIGTERM'])
      expect(await belfry.lock('held')).toBeDefined()
      await belfry.stop()
    },
  )
})
