/** Killed waiters do not delay the waiters behind them. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/index.js'
import { Contender } from './contenders.js'
import { locationKinds, type StoreLocation, storeAt } from './store-locations.js'

const TTL = { ttl: '5m' } as const
/** Far longer than any test here takes. */
const WAIT = { ...TTL, wait: '10m' } as const
const SOON_MS = 2_000
/** The tests start processes, which is slow on a busy machine. */
const SLOW = { timeout: 90_000 } as const

for (const kind of locationKinds) {
  describe(`waiters for a lock on ${kind.name}`, () => {
    let location: StoreLocation
    let remove = async () => {}
    const belfries: Belfry[] = []
    const contenders: Contender[] = []

    beforeAll(async () => {
      ;({ location, remove } = await kind.make())
    }, SLOW.timeout)

    afterEach(async () => {
      for (const contender of contenders.splice(0)) await contender.kill()
      for (const belfry of belfries.splice(0)) await belfry.stop()
    })

    afterAll(() => remove())

    async function instance(): Promise<Belfry> {
      const store = storeAt(location)
      await store.open()
      const belfry = createBelfry({ store })
      belfries.push(belfry)
      return belfry
    }

    /** A process with this many queued waiters. */
    async function waiters(times: number): Promise<Contender> {
      const contender = new Contender(location)
      contenders.push(contender)
      await contender.received('ready')
      await contender.wait(WAIT, times)
      return contender
    }

    // Retried, because the test measures time and the machine may pause.
    it('that were killed, five of them in front of a live one, delay it by two seconds at most', {
      ...SLOW,
      retry: 2,
    }, async () => {
      const [holder, alive] = [await instance(), await instance()]
      const held = await holder.lock('shared', TTL)
      const dead = await waiters(5)
      const waiting = alive.lock('shared', WAIT)
      await dead.kill()
      const releasedAt = performance.now()
      expect(await held?.release()).toBe(true)
      const lock = await waiting
      const tookMs = performance.now() - releasedAt
      expect(await lock?.release()).toBe(true)
      expect(tookMs).toBeLessThan(SOON_MS)
    })

    it('whose process is stopped for long are passed over, and get the lock after it continues', SLOW, async () => {
      const [holder, alive] = [await instance(), await instance()]
      const held = await holder.lock('shared', TTL)
      const stopped = await waiters(1)
      stopped.pause()
      const waiting = alive.lock('shared', WAIT)
      await held?.release()
      const lock = await waiting
      expect(lock).toBeDefined()
      stopped.resume()
      await lock?.release()
      await stopped.received('held')
    })
  })
}
