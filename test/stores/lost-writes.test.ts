/**
 * A store that loses its last writes: a restored backup, or a failover to a server that lacks them. What was given out as
 * an identity before is not given out again. test/stores/redis-failover.test.ts has the same for Redis.
 */
import { copyFileSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Store } from '../../src/core/store.js'
import { createBelfry, silentLogger } from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { key, newRun, Scene } from '../../src/testing/contract/scene.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { type OwnPostgres, ownPostgres } from './own-postgres.js'
import { type LogLine, recorder } from './recorder.js'
import { temporaryFile } from './temporary-file.js'

/** Everything that a store gives out as an identity. */
interface Identities {
  readonly runs: readonly string[]
  readonly versions: readonly number[]
  readonly tokens: readonly number[]
}

async function identitiesOf(store: Store, name = 'work'): Promise<Identities> {
  const scene = new Scene({ store, elapse: sleep })
  await scene.join()
  const batch = await store.runs.enqueue(Array.from({ length: 20 }, () => newRun()))
  const deduped = { dedupe: name, dedupeForMs: 60_000, keep: 'none' } as const
  const single = [await scene.enqueue(deduped), await scene.enqueue({ key: key(name), checkKey: true })]
  expect((await scene.tryEnqueue(deduped)).run).toBe(single[0])
  expect((await scene.tryEnqueue({ key: key(name), checkKey: true })).run).toBe(single[1])
  const versions: number[] = []
  for (const payload of [1, 2, 3]) versions.push((await scene.put(`edited ${name}`, { payload })).version)
  versions.push((await store.schedules.pause(`edited ${name}`, undefined))?.version ?? 0)
  await scene.putTicks(`ticks of ${name}`, [-20, -10, 90_000_000])
  await scene.advance()
  const backfill = { schedule: `ticks of ${name}`, origin: 'backfill', tick: 1, backfill: 'again' } as const
  await scene.enqueue(backfill)
  const ofSchedule = (await scene.runsOf(`ticks of ${name}`)).map(({ id }) => id)
  expect((await scene.tryEnqueue(backfill)).run).toBe(ofSchedule[0])
  const tokens: number[] = []
  for (const holder of ['one', 'two', 'three']) {
    tokens.push((await scene.acquire(`lock ${name}`, holder)).token)
    await store.leases.release({ name: `lock ${name}`, holder })
  }
  const claimed = await scene.claim()
  const keyed = claimed.find(({ key }) => key?.name === name)
  expect((await store.leases.inspect(name)).map(({ run }) => run)).toEqual([keyed?.id])
  for (const run of claimed) expect(await scene.settle(run)).toBe('settled')
  expect((await scene.tryEnqueue(deduped)).run).toBe(single[0])
  return { runs: [...batch.map(({ run }) => run), ...single, ...ofSchedule], versions, tokens }
}

function expectNoneAgain(found: Identities, lost: Identities): void {
  for (const kind of ['runs', 'versions', 'tokens'] as const) {
    const all: readonly (string | number)[] = [...lost[kind], ...found[kind]]
    expect(new Set(all).size, kind).toBe(all.length)
  }
}

/** Ids that were lost belong to no run, whatever runs have their numbers now. */
async function expectUnknown(store: Store, runs: readonly string[]): Promise<void> {
  for (const id of runs) {
    expect(await store.runs.get(id)).toBeUndefined()
    expect(await store.runs.cancel(id)).toBe('missing')
    expect(await store.runs.retry(id)).toBe('missing')
  }
}

async function opened(store: Store): Promise<Store> {
  await store.open()
  return store
}

describe('a store that lost its last writes', () => {
  it('gives no id, version or token out again: a SQLite file that was restored', async () => {
    const file = temporaryFile()
    const before = await opened(sqlite({ path: file.path }))
    await identitiesOf(before, 'earlier work')
    await before.close()
    copyFileSync(file.path, `${file.path}.backup`)
    const first = await opened(sqlite({ path: file.path }))
    const lost = await identitiesOf(first)
    await first.close()
    for (const end of ['-wal', '-shm']) rmSync(`${file.path}${end}`, { force: true })
    copyFileSync(`${file.path}.backup`, file.path)
    const store = await opened(sqlite({ path: file.path }))
    await expectUnknown(store, lost.runs)
    expectNoneAgain(await identitiesOf(store), lost)
    await expectUnknown(store, lost.runs)
    await store.close()
    await file.remove()
  })

  it('gives no id, version or token out again: a memory store of a process that restarted', async () => {
    const clock = manualClock()
    const lost = await identitiesOf(await opened(memory({ clock })))
    await clock.advance(1)
    const store = await opened(memory({ clock }))
    expectNoneAgain(await identitiesOf(store), lost)
    await expectUnknown(store, lost.runs)
  })
})

describe('a Postgres server that lost its last writes, and whose clock is behind', () => {
  const BEHIND_MS = 8_000
  let server: OwnPostgres

  beforeAll(async () => {
    server = await ownPostgres()
    await migratePostgres({ url: server.url })
  }, 120_000)
  afterAll(() => server.remove())

  const store = () => opened(postgres({ url: server.url }))

  /** Retries while the server is down. */
  const eventually = <Result>(work: () => Promise<Result>) => vi.waitFor(work, { timeout: 20_000, interval: 20 })

  it('gives no id, version or token out again, and its tokens grow for clients that were there', async () => {
    const before = await store()
    await identitiesOf(before, 'earlier work')
    await before.close()
    await server.keepCopy()

    const instance = () => createBelfry({ store: postgres({ url: server.url }), logger: silentLogger })
    const [idle, busy, there] = [instance(), instance(), await store()]
    const planner = new Scene({ store: there, elapse: sleep })
    const first = await idle.lock('token')
    await first?.release()
    const lost = await identitiesOf(there)
    await planner.put('planned', { timeline: { every: 3_600_000 } })
    await planner.putTicks('known', [-10, 90_000_000])
    expect(await planner.advance()).toMatchObject({ recorded: 1 })
    const tokens = [first?.token ?? 0]
    for (let count = 0; count < 20; count += 1) {
      const lock = await busy.lock('token')
      tokens.push(lock?.token ?? 0)
      await lock?.release()
    }
    const lostAt = await there.now()
    await server.restoreCopy({ skewMs: -BEHIND_MS })

    const fresh = await store()
    expect(await fresh.now()).toBeLessThan(lostAt)
    await expectUnknown(fresh, lost.runs)
    expectNoneAgain(await identitiesOf(fresh), lost)
    await expectUnknown(fresh, lost.runs)
    const next = await eventually(() => idle.lock('token'))
    expect(next?.token).toBeGreaterThan(Math.max(...tokens))

    // The planner remembers definitions that were lost: it does not take them for those that came after.
    for (const id of ['a', 'b', 'c', 'd']) await eventually(() => planner.putTicks(id, [-10, 90_000_000]))
    expect(await planner.advance()).toMatchObject({ recorded: 4 })
    for (const id of ['a', 'b', 'c', 'd']) expect(await planner.runsOf(id)).toHaveLength(1)
    await Promise.all([idle.stop(), busy.stop(), there.close(), fresh.close()])
  }, 60_000)

  it('is noticed by an instance that was there: it warns once, and the doctor says what to look at', async () => {
    const lines: LogLine[] = []
    const warnings = () => lines.filter(({ message }) => /has lost writes/.test(message))
    const belfry = createBelfry({
      store: postgres({ url: server.url }),
      ...{ lease: '10s', heartbeat: '200ms', poll: '100ms', logger: recorder(lines) },
    })
    let ticks = 0
    belfry.job('count', {
      run: () => {
        ticks += 1
      },
    })
    await belfry.start()
    await belfry.schedules.put('bell', { every: '1s', job: 'count' })
    await server.keepCopy()
    const before = ticks
    await expect.poll(() => ticks, { timeout: 20_000 }).toBeGreaterThan(before + 2)
    await server.restoreCopy()
    const found = () =>
      belfry.doctor().then((checks) => checks.find(({ name }) => name === 'lost writes')?.findings ?? [])
    await eventually(async () => expect(await found()).toHaveLength(1))
    const [{ what, fix } = { what: '', fix: '' }] = await found()
    const [, from = '', until = ''] = /between (\S+) and (\S+):/.exec(what) ?? []
    expect(Date.parse(until) - Date.parse(from)).toBeGreaterThan(1_000)
    expect(fix).toMatch(/repeat those that are gone; .*nothing has to be done about ids/)
    await eventually(async () =>
      expect((await found())[0]?.fix).toMatch(/ran again, under the same event id \(\d+ are there: bell-\d+/),
    )
    expect(warnings()).toHaveLength(1)
    await belfry.stop()
  }, 60_000)
})
