/** A process that is blocked or paused while it loses its lock learns of the loss at the end of its work. */
import { writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/index.js'
import { temporaryFile } from '../stores/temporary-file.js'
import { Contender } from './contenders.js'
import { locationKinds, type StoreLocation, storeAt } from './store-locations.js'

/** The tests start processes, which is slow on a busy machine. */
const SLOW = { timeout: 90_000 } as const
/** Without renewal, so that the lock expires while the event loop is blocked. */
const SHORT = { ttl: '600ms', renew: false } as const

for (const kind of locationKinds) {
  describe(`a holder on ${kind.name}`, () => {
    let location: StoreLocation
    let remove = async () => {}
    let belfry: Belfry
    let holder: Contender

    beforeAll(async () => {
      ;({ location, remove } = await kind.make())
      const store = storeAt(location)
      await store.open()
      belfry = createBelfry({ store })
    }, SLOW.timeout)

    beforeEach(async () => {
      holder = new Contender(location)
      await holder.received('ready')
    }, SLOW.timeout)

    afterEach(() => holder.kill())

    afterAll(async () => {
      await belfry.stop()
      await remove()
    })

    it('whose event loop was blocked past the TTL learns that another had the lock', SLOW, async () => {
      const unblock = temporaryFile()
      holder.work(SHORT, unblock.path)
      await holder.received('held')
      const rival = await belfry.lock('shared', { wait: '1m' })
      expect(rival).toBeDefined()
      writeFileSync(unblock.path, '')
      const report = { code: 'LOCK_LOST', value: 'done', lost: ['shared'] }
      expect(await holder.received('over')).toMatchObject(report)
      expect(await rival?.release()).toBe(true)
      await unblock.remove()
    })

    it('that was stopped by SIGSTOP while another acquired and released the lock learns of it', SLOW, async () => {
      holder.work({ ttl: '600ms' })
      await holder.received('held')
      holder.pause()
      const rival = await belfry.lock('shared', { wait: '1m' })
      expect(await rival?.release()).toBe(true)
      holder.resume()
      holder.finish()
      const report = { code: 'LOCK_LOST', value: 'done', lost: ['shared'] }
      expect(await holder.received('over')).toMatchObject(report)
    })

    it(
      'whose event loop was blocked past the TTL keeps its value when no other holder took the lock',
      SLOW,
      async () => {
        const unblock = temporaryFile()
        holder.work(SHORT, unblock.path)
        await holder.received('held')
        await expect.poll(() => belfry.locks.inspect('shared'), { timeout: 60_000 }).toEqual([])
        writeFileSync(unblock.path, '')
        expect(await holder.received('over')).toMatchObject({ value: 'done', lost: [] })
        await unblock.remove()
      },
    )
  })
}
