/** Schedules declared in code, across deploys and rollbacks. */
import { describe, expect, it } from 'vitest'
import type { Belfry, ScheduleFields, ScheduleInput } from '../../src/index.js'
import { createTestBelfry, type TestBelfry } from '../../src/testing/index.js'

type Kit = Pick<TestBelfry, 'instance'>

/** Starts an instance of the app `shop` that declares these schedules, each with the release as its payload. */
async function deploy(
  { instance }: Kit,
  release: string | undefined,
  ids: readonly string[],
  schedule: ScheduleFields = { every: '1h' },
): Promise<Belfry> {
  const belfry = instance({ app: 'shop', lease: '15s', ...(release === undefined ? {} : { release }) })
  belfry.job('note', { run: () => null })
  const input = { payload: release ?? 'none', ...schedule, job: 'note' } as ScheduleInput
  for (const id of ids) belfry.schedule(id, input)
  await belfry.start()
  return belfry
}

async function declared(belfry: Belfry): Promise<string[]> {
  return (await belfry.schedules.list()).items.map(({ id, definition }) => `${id} ${definition.payload}`)
}

describe('declared schedules', () => {
  it('without an app are put and never removed', async () => {
    const { instance, advance } = createTestBelfry({ lease: '15s' })
    const first = instance()
    first.schedule('old', { every: '1h', job: 'note' })
    await first.start()
    await first.stop()
    const second = instance()
    second.schedule('new', { every: '1h', job: 'note' })
    await second.start()
    await advance('1h')
    expect((await second.schedules.list()).items.map(({ id }) => id)).toEqual(['new', 'old'])
  })

  it('of a new release apply when start() resolves; schedules it no longer declares are removed once the old release is gone', async () => {
    const kit = createTestBelfry()
    const old = await deploy(kit, '1', ['kept', 'dropped'])
    await kit.advance('1m')
    const green = await deploy(kit, '2', ['kept', 'added'])
    expect(await declared(green)).toEqual(['added 2', 'dropped 1', 'kept 2'])
    await kit.advance('10m')
    // A schedule stays while a live instance of another release declares it.
    expect(await declared(green)).toEqual(['added 2', 'dropped 1', 'kept 2'])
    await old.stop()
    await kit.advance('30s')
    expect(await declared(green)).toContain('dropped 1')
    await kit.advance('2m')
    expect(await declared(green)).toEqual(['added 2', 'kept 2'])
  })

  it('of an old release do not return when it restarts late', async () => {
    const kit = createTestBelfry()
    await deploy(kit, '1.9', ['a'])
    await deploy(kit, '1.10', ['a', 'b'])
    await deploy(kit, '1.9', ['a'])
    await kit.advance('10m')
    const [schedule] = (await kit.belfry.schedules.list()).items
    // Releases are compared number by number: 1.10 is newer than 1.9.
    expect(schedule?.definition.payload).toBe('1.10')
    expect(await declared(kit.belfry)).toEqual(['a 1.10', 'b 1.10'])
  })

  it('of the newest remaining release apply one minute after a rollback', async () => {
    const kit = createTestBelfry()
    await deploy(kit, '1', ['a', 'one'])
    const bad = await deploy(kit, '2', ['a', 'two'])
    await kit.advance('1m')
    expect(await declared(kit.belfry)).toEqual(['a 2', 'one 1', 'two 2'])
    await bad.stop()
    await kit.advance('30s')
    expect(await declared(kit.belfry)).toEqual(['a 2', 'one 1', 'two 2'])
    await kit.advance('2m')
    expect(await declared(kit.belfry)).toEqual(['a 1', 'one 1'])
  })

  it('of a release that starts again much later apply when start() resolves', async () => {
    const kit = createTestBelfry()
    const first = await deploy(kit, '1', ['a', 'one'])
    await first.stop()
    const second = await deploy(kit, '2', ['a'])
    await kit.advance('5m')
    expect(await declared(kit.belfry)).toEqual(['a 2'])
    await second.stop()
    await kit.advance('1h')
    const again = await deploy(kit, '1', ['a', 'one'])
    expect(await declared(again)).toEqual(['a 1', 'one 1'])
  })

  it('of a release that returns to an earlier set count as newer than the release in between', async () => {
    const kit = createTestBelfry()
    const same: ScheduleFields = { every: '1h', payload: 'same' }
    await deploy(kit, '1', ['a'], same)
    await deploy(kit, '2', ['a'], { ...same, payload: 'other' })
    await deploy(kit, '3', ['a'], same)
    expect(await declared(kit.belfry)).toEqual(['a same'])
    await kit.advance('10m')
    expect(await declared(kit.belfry)).toEqual(['a same'])
  })

  it('without a release: the set first seen last applies', async () => {
    const kit = createTestBelfry()
    const first = await deploy(kit, undefined, ['a'], { every: '1h', payload: 'first' })
    await kit.advance('1m')
    await deploy(kit, undefined, ['a'], { every: '1h', payload: 'second' })
    await kit.advance('1m')
    // Another start with the first payload does not make that declaration newer than the second.
    await deploy(kit, undefined, ['a'], { every: '1h', payload: 'first' })
    await kit.advance('10m')
    expect(await declared(first)).toEqual(['a second'])
  })

  it('do not flap when the heartbeat interval is longer than the time after which a release is dropped', async () => {
    const { instance, advance } = createTestBelfry({ lease: '1h' })
    const shop = async (release: string) => {
      const belfry = instance({ app: 'shop', release })
      belfry.schedule('a', { every: '1h', job: 'note', payload: release })
      await belfry.start()
      return belfry
    }
    const old = await shop('1')
    await advance('7m')
    await shop('2')
    const seen = new Set<string>()
    for (let days = 0; days < 10; days += 1 / 72) {
      await advance('20m')
      for (const schedule of await declared(old)) seen.add(schedule)
    }
    expect([...seen]).toEqual(['a 2'])
  })

  it('keep their timeline through a deploy that does not change it', async () => {
    const kit = createTestBelfry()
    await deploy(kit, '1', ['a'], { every: '15m', payload: 1 })
    await kit.advance('10m')
    const green = await deploy(kit, '2', ['a'], { every: '15m', payload: 2 })
    await kit.advance('6m')
    const { items } = await green.runs.list({ schedule: 'a' })
    expect(items.map(({ tick, payload }) => [new Date(tick ?? 0).toISOString(), payload])).toEqual([
      ['2026-01-01T00:15:00.000Z', 2],
    ])
  })

  it('do not affect schedules of other apps or without an app', async () => {
    const kit = createTestBelfry()
    await kit.belfry.schedules.put('by hand', { every: '1h', job: 'note', payload: 'hand' })
    const other = kit.instance({ app: 'billing', lease: '15s' })
    other.schedule('invoices', { every: '1h', job: 'note', payload: 'billing' })
    await other.start()
    await deploy(kit, '1', ['a'])
    await kit.advance('10m')
    expect(await declared(other)).toEqual(['a 1', 'by hand hand', 'invoices billing'])
  })

  it('are refused when one is declared twice, or after start', async () => {
    const { belfry } = createTestBelfry()
    belfry.schedule('a', { every: '1h', job: 'note' })
    expect(() => belfry.schedule('a', { every: '2h', job: 'note' })).toThrow(
      expect.objectContaining({ code: 'SCHEDULE_DUPLICATE' }),
    )
    await belfry.start()
    expect(() => belfry.schedule('b', { every: '1h', job: 'note' })).toThrow(/use schedules.put\(\)/)
  })
})
