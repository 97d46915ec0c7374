/**
 * Failover to a replica whose clock is five seconds behind, and which lacks the last writes of its primary. The servers
 * and the time are real.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { plan, type SkipRange } from '../../src/core/schedules/plan.js'
import type { Store } from '../../src/core/store.js'
import { redis } from '../../src/stores/redis/index.js'
import { key, Scene } from '../../src/testing/contract/scene.js'
import { failoverAddress } from '../servers/failover-address.js'
import { wrongServerClock } from '../servers/faketime.js'
import { startOwnRedis, tellRedis } from '../servers/redis.js'

const BEHIND_MS = 5_000

interface Pair {
  /** The URL of the current primary. */
  readonly url: string
  /** Ends the replication: the replica lacks all later writes when it is promoted. */
  detach(): Promise<void>
  /** Crashes the primary, and directs all clients to the replica. */
  failOver(): Promise<void>
}

async function withPair(work: (pair: Pair) => Promise<void>): Promise<void> {
  const primary = await startOwnRedis(['--repl-diskless-sync-delay', '0'])
  const { port } = new URL(primary.url)
  const replicaOf = ['--appendonly', 'no', '--replicaof', '127.0.0.1', port]
  const replica = await startOwnRedis(replicaOf, { env: wrongServerClock(-BEHIND_MS) })
  const address = await failoverAddress(primary.url)
  try {
    const follows = () => tellRedis(replica.url, 'INFO', 'replication').then(String)
    await expect.poll(follows, { timeout: 20_000 }).toMatch(/master_link_status:up/)
    const [one, other] = [await timeOf(primary.url), await timeOf(replica.url)]
    expect(Math.abs(one - other - BEHIND_MS)).toBeLessThan(1_000)
    await work({
      url: address.url,
      async detach() {
        const reached = await offsetOf(primary.url)
        await expect.poll(() => offsetOf(replica.url)).toBeGreaterThanOrEqual(reached)
        await tellRedis(replica.url, 'REPLICAOF', 'NO', 'ONE')
      },
      async failOver() {
        await primary.crash()
        address.failOver(replica.url)
      },
    })
  } finally {
    await address.close()
    await Promise.all([replica.stop(), primary.stop()])
  }
}

async function timeOf(url: string): Promise<number> {
  const [seconds, micros] = (await tellRedis(url, 'TIME')) as [string, string]
  return Number(seconds) * 1_000 + Number(micros) / 1_000
}

/** A server's replication offset. */
async function offsetOf(url: string): Promise<number> {
  const role = (await tellRedis(url, 'ROLE')) as readonly unknown[]
  return Number(role[0] === 'master' ? role[1] : role[4])
}

async function opened(url: string): Promise<Store> {
  const store = redis({ url, timeoutMs: 2_000 })
  await store.open()
  return store
}

/** Retries while the store is unreachable. */
function eventually<Result>(work: () => Promise<Result>): Promise<Result> {
  return vi.waitFor(work, { timeout: 20_000, interval: 20 })
}

describe('a failover that loses writes, to a replica whose clock is behind', { timeout: 120_000 }, () => {
  it('never repeats or lowers a token or number', async () => {
    await withPair(async ({ url, detach, failOver }) => {
      const stores = [await opened(url), await opened(url)]
      const [one, two] = stores.map((store) => new Scene({ store, elapse: sleep })) as [Scene, Scene]
      const tokens: number[] = []
      // Each caller is new and passes no floor, so only the client's estimate of the store's time keeps tokens growing.
      const take = async (scene: Scene) => {
        const holder = `holder ${tokens.length}`
        const lease = await eventually(() => scene.acquire('lock', holder, { floor: 0 }))
        tokens.push(lease.token)
        await eventually(() => scene.store.leases.release({ name: 'lock', holder }))
      }
      await take(one)
      await take(two)
      await detach()
      for (let count = 0; count < 50; count += 1) await take(one)
      // New runs, versions and ticks do not reuse the numbers of lost ones either.
      const numbers = async ({ enqueue, put, putTicks, store, runsOf }: Scene, id: string) => {
        const [run, { version }] = [await enqueue(), await put(id)]
        await putTicks(`ticks of ${id}`, [-10, 90_000_000])
        await store.schedules.advance({ limit: 10, lookaheadMs: 0, plan })
        const [tick] = await runsOf(`ticks of ${id}`)
        return [run, version, tick?.id ?? ''].map((each) => Number.parseInt(String(each), 10))
      }
      const lost = await numbers(one, 'lost')
      await failOver()
      for (let count = 0; count < 5; count += 1) {
        await take(two)
        await take(one)
      }
      const found = await numbers(two, 'found')
      expect(Math.min(...found)).toBeGreaterThan(Math.max(...lost))
      expect(tokens).toHaveLength(62)
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
      await Promise.all(stores.map((store) => store.close()))
    })
  })

  it('fences an attempt that was lost with its claim', async () => {
    await withPair(async ({ url, detach, failOver }) => {
      const stores = [await opened(url), await opened(url)]
      const [one, two] = stores.map((store) => new Scene({ store, elapse: sleep })) as [Scene, Scene]
      await one.join('one', 60_000)
      await two.join('two', 60_000)
      const id = await one.enqueue({ key: key('k') })
      await detach()
      const lost = await one.claimOne('one')
      await failOver()
      const again = await eventually(() => two.claimOne('two'))
      expect([lost.id, again.id]).toEqual([id, id])
      expect(again.token).toBeGreaterThan(lost.token)
      expect(await one.settle(lost)).toBe('stale')
      expect((await one.beat('one', [lost])).lost).toEqual([id])
      expect(await two.settle(again)).toBe('settled')
      await Promise.all(stores.map((store) => store.close()))
    })
  })

  it('neither loses nor repeats a tick, although the store’s clock went back', async () => {
    await withPair(async ({ url, detach, failOver }) => {
      const started: { readonly tick: number; readonly token: number }[] = []
      const instances = [instanceOn(url, started), instanceOn(url, started)]
      for (const belfry of instances) await belfry.start()
      const [one] = instances as [Belfry]
      await one.schedules.put('s', { every: '1s', job: 'work', missed: { policy: 'all' } })
      const ticksBy = (count: number) => expect.poll(() => started.length, { timeout: 30_000 }).toBeGreaterThan(count)
      await ticksBy(1)
      await detach()
      const kept = started.length
      await ticksBy(kept + 1)
      await failOver()
      await ticksBy(started.length + 4)
      await one.schedules.pause('s')
      for (const belfry of instances) await belfry.stop()

      const store = await opened(url)
      const { anchor, cursor } = (await store.schedules.get('s')) ?? { anchor: 0, cursor: 0 }
      const timeline = Array.from(
        { length: Math.floor((cursor - anchor) / 1_000) },
        (_, at) => anchor + (at + 1) * 1_000,
      )
      const { items } = await store.runs.list({ schedule: 's', limit: 1_000 })
      const skipped = await store.schedules.skips('s', 0, Number.MAX_SAFE_INTEGER, 1_000)
      const recorded = [...items.map(({ tick = 0 }) => tick), ...skipped.flatMap(ticksIn)]
      expect(recorded.sort()).toEqual(timeline)
      await store.close()
      // Ticks that the failover lost run again under the same event id; others do not.
      expect([...new Set(started.map(({ tick }) => tick))].sort()).toEqual(ranOf(items))
      for (const { tick } of started.slice(0, kept - 1))
        expect(started.filter((each) => each.tick === tick)).toHaveLength(1)
      expect(started.map(({ token }) => token)).toEqual(started.map(({ token }) => token).sort((a, b) => a - b))
    })
  })

  it('does not record again what was recorded before it', async () => {
    await withPair(async ({ url, detach, failOver }) => {
      const stores = [await opened(url), await opened(url)]
      const [one, two] = stores.map((store) => new Scene({ store, elapse: sleep })) as [Scene, Scene]
      await one.putTicks('s', [-20, -10, 90_000_000])
      const advance = (scene: Scene) => scene.store.schedules.advance({ limit: 10, lookaheadMs: 0, plan })
      expect(await advance(one)).toMatchObject({ recorded: 2 })
      await detach()
      await failOver()
      expect(await eventually(() => advance(two))).toMatchObject({ recorded: 0 })
      expect(await two.runsOf('s')).toHaveLength(2)
      await Promise.all(stores.map((store) => store.close()))
    })
  })
})

function instanceOn(url: string, started: { readonly tick: number; readonly token: number }[]): Belfry {
  const logger = { debug() {}, info() {}, warn() {}, error() {} }
  const belfry = createBelfry({ store: redis({ url, timeoutMs: 2_000 }), lease: '2s', poll: '200ms', logger })
  belfry.job('work', {
    exclusive: { whenBusy: 'wait' },
    run: ({ tick, token }) => void started.push({ tick: tick?.getTime() ?? 0, token }),
  })
  return belfry
}

function ranOf(runs: readonly { readonly tick?: number; readonly state: string }[]): number[] {
  return runs
    .filter(({ state }) => state === 'succeeded')
    .map(({ tick = 0 }) => tick)
    .sort()
}

function ticksIn({ from, count }: SkipRange): number[] {
  return Array.from({ length: count }, (_, at) => from + at * 1_000)
}
