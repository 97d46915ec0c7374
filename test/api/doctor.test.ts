import { describe, expect, it } from 'vitest'
import { LOST_WRITES_KIND, lostWritesBody } from '../../src/core/records/lost-writes.js'
import { plan } from '../../src/core/schedules/plan.js'
import type { Store } from '../../src/core/store.js'
import { createBelfry, silentLogger } from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { isoText } from '../../src/time/instant.js'

const JOBS = [{ name: 'digest' }]

function setup(change: (store: Store) => Store = (store) => store) {
  const clock = manualClock()
  const store = change(memory({ clock }))
  const own = { ...clock, now: clock.now }
  const belfry = createBelfry({ store, clock: own, roles: [], logger: silentLogger })
  const join = (id: string, info: object = {}) =>
    store.instances.join({ id, host: 'vm', pid: 7, zoneData: '2026a', jobs: JOBS, ...info }, 600_000)
  const findings = async () =>
    (await belfry.doctor()).flatMap(({ name, findings: found }) => found.map(({ what, fix }) => ({ name, what, fix })))
  return { clock, store, belfry, join, findings, own }
}

describe('the doctor', () => {
  it('finds nothing in a healthy store', async () => {
    const { belfry, join, findings, clock } = setup()
    await join('a', { clockAt: clock.now() })
    await belfry.schedules.put('digest/eu', { every: '1h', job: 'digest' })
    expect(await findings()).toEqual([])
  })

  it('reports that no instance is live, that ticks are late, and that the store is frozen', async () => {
    const { belfry, findings, clock } = setup()
    await belfry.schedules.put('beat', { every: '1s', to: 'kafka' })
    await belfry.freeze('moving house')
    await clock.advance(60_000)
    expect(await findings()).toEqual([
      expect.objectContaining({ name: 'instances', what: 'nobody takes part: no tick is recorded and nothing runs' }),
      { name: 'instances', what: 'nothing starts: frozen 60 s ago (moving house)', fix: 'belfry thaw' },
      {
        name: 'sinks',
        what: 'nobody delivers to the sink "kafka", which the schedule "beat" needs',
        fix: 'start an instance that has it, or: belfry pause "beat"',
      },
      {
        name: 'lateness',
        what: 'ticks are recorded 59 s late, for example of "beat"',
        fix: 'start an instance with the role tick',
      },
    ])
  })

  it('says what to look at when an instance has noticed that the store lost writes', async () => {
    const { belfry, findings, clock, store } = setup()
    await belfry.schedules.put('bell', { every: '1s', to: 'kafka', missed: 'all' })
    const from = clock.now()
    await clock.advance(3_000)
    await store.schedules.advance({ limit: 10, lookaheadMs: 0, plan })
    const report = (until: number, process: string) => {
      const body = lostWritesBody({ from: from + (process === 'vm:7' ? 1_000 : 0), until, process })
      return store.records.put({ kind: LOST_WRITES_KIND, id: process, body })
    }
    await report(from + 60_000, 'vm:7')
    await report(from + 70_000, 'vm:8')
    const [found] = (await findings()).filter(({ name }) => name === 'lost writes')
    const [start, end] = [from + 1_000, from + 60_000].map((at) => isoText(at))
    expect(found?.what).toMatch(`the store has lost writes between ${start} and ${end}`)
    const [second, third] = [2_000, 3_000].map((offset) => `bell-${(from + offset) / 1_000}`)
    expect(found?.fix).toMatch(`(2 are there: ${third}, ${second})`)
    expect(found?.fix).toMatch(`until ${end} by the store's clock, new clients may get tokens lower than lost ones`)
    await clock.advance(60_000)
    expect((await findings()).find(({ name }) => name === 'lost writes')?.fix).not.toMatch('may get tokens')
  })

  it('reports clock skew and differing zone data', async () => {
    const { join, findings, clock, own } = setup()
    await join('a', { clockAt: clock.now() - 3_600_000 })
    await join('b', { zoneData: '2025b', pid: 8 })
    own.now = () => clock.now() + 5_000
    expect((await findings()).map(({ what }) => what)).toEqual([
      "the clock of the process that looks is 5000 ms ahead of the store's",
      "the clock of instance a on vm was 60 min behind the store's when it joined",
      'zone data differ: 2026a on vm:7; 2025b on vm:8. Ticks in zones that changed depend on who plans them',
    ])
  })

  it('names schedules whose job no live instance runs, until they are paused', async () => {
    const { belfry, join, findings, store } = setup()
    await join('a')
    await join('b', { jobs: [{ name: 'report' }] })
    await store.instances.leave('b')
    await belfry.schedules.put('r', { every: '1h', job: 'report' })
    await belfry.schedules.put('t', { every: '1h', job: 'typo' })
    await belfry.schedules.put('d', { every: '1h', job: 'digest' })
    expect(await findings()).toEqual([
      {
        name: 'jobs',
        what: 'nobody runs the job "report", which the schedule "r" needs',
        fix: 'start an instance that has it, or: belfry pause "r"',
      },
      expect.objectContaining({ what: 'nobody runs the job "typo", which the schedule "t" needs' }),
    ])
    await belfry.schedules.pause('r')
    await belfry.schedules.pause('t')
    expect(await findings()).toEqual([])
  })

  it('names jobs and sinks that runs wait for when there are too many schedules to check', async () => {
    const { belfry, join, findings, store } = setup((inner) => ({
      ...inner,
      schedules: { ...inner.schedules, list: async () => ({ items: [] }) },
    }))
    await join('a', { sinks: [{ name: 'orders' }] })
    await belfry.schedules.put('t', { every: '1h', job: 'typo' })
    await belfry.schedules.put('k', { every: '1h', to: 'kafka' })
    await belfry.schedules.put('o', { every: '1h', to: 'orders' })
    for (const id of ['t', 'k', 'o']) await belfry.schedules.trigger(id)
    expect((await store.runs.list({ limit: 10 })).items).toHaveLength(3)
    expect(await findings()).toEqual([
      {
        name: 'jobs',
        what: expect.stringMatching(/^nobody runs the job "typo", and run \S+ of the schedule "t" waits$/),
        fix: 'start an instance that has it, or: belfry cancel --job "typo"',
      },
      {
        name: 'sinks',
        what: expect.stringMatching(/^nobody delivers to the sink "kafka", and run \S+ of the schedule "k" waits$/),
        fix: 'start an instance that has it, or: belfry cancel --to "kafka"',
      },
    ])
  })

  it('reports late runs, and a key that has waiters but no holder', async () => {
    const { belfry, join, findings, store, clock } = setup((inner) => ({
      ...inner,
      leases: { ...inner.leases, inspect: async () => [] },
    }))
    await join('a')
    const key = { name: 'k', limit: 1, whenBusy: 'wait' } as const
    const run = { target: { job: 'digest' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all' } as const
    await store.runs.enqueue([{ ...run, key }, { ...run, key }, run])
    const jobs = [{ name: 'digest', limit: 10 }]
    const [first] = (await store.runs.claim({ instance: 'a', claim: 1, limit: 1, jobs, sinks: [], floor: 0 })).runs
    expect(first?.key?.name).toBe('k')
    await store.runs.claim({ instance: 'a', claim: 2, limit: 1, jobs, sinks: [], floor: 0 })
    await belfry.enqueue('digest')
    await clock.advance(30_000)
    const found = await findings()
    expect(found.map(({ name }) => name)).toEqual(['keys', 'lateness'])
    expect(found[0]?.what).toMatch(/^run \S+ waits for the key "k", which nobody holds$/)
    expect(found[1]?.what).toMatch(
      /^runs start 30 s late: 1 is due, the oldest for the (job|sink) ".*", and the live instances/,
    )
  })
})
