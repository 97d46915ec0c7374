/** Which definition of a schedule a tick uses, and where a timeline with `startsAt` begins. */
import { describe, expect, it } from 'vitest'
import { createTestBelfry } from '../../src/testing/index.js'

const at = (time: string) => `2026-01-01T${time}Z`

describe('a tick', () => {
  it('that was not recorded before a put gets the new payload, also when it was already due', async () => {
    const { belfry, instance, advance, runs } = createTestBelfry({ roles: [] })
    const put = (payload: number) =>
      belfry.schedules.put('a', { cron: '* * * * *', job: 'work', payload, missed: 'all' })
    await put(1)
    await advance('150s')
    await put(2)
    const ticker = instance({ roles: ['tick'] })
    await ticker.start()
    await advance('30s')
    expect(
      (await runs('a')).map(({ tick, payload }) => [new Date(tick ?? 0).toISOString().slice(14, 19), payload]),
    ).toEqual([
      ['01:00', 2],
      ['02:00', 2],
      ['03:00', 2],
    ])
    await ticker.stop()
  })

  it('that is recorded and due keeps its payload when the timeline is unchanged', async () => {
    const { belfry, advance, runs } = createTestBelfry({ roles: ['tick'] })
    await belfry.start()
    const put = (payload: number) =>
      belfry.schedules.put('a', { cron: '* * * * *', job: 'work', payload, missed: 'all' })
    await put(1)
    await advance('61s')
    await put(2)
    await advance('60s')
    expect((await runs('a')).map(({ payload }) => payload)).toEqual([1, 2])
    await belfry.stop()
  })

  it('that was recorded ahead of its instant is recorded again with the new payload', async () => {
    const { belfry, advance, runs } = createTestBelfry({ roles: ['tick'], lookahead: '30s' })
    await belfry.start()
    const put = (payload: number) => belfry.schedules.put('a', { cron: '* * * * *', job: 'work', payload })
    await put(1)
    await advance('45s')
    expect(await runs('a')).toMatchObject([{ payload: 1 }])
    await put(2)
    await advance('16s')
    expect(await runs('a')).toMatchObject([{ payload: 2 }])
    await belfry.stop()
  })
})

describe('startsAt', () => {
  it('in the past, but within the grace, catches up; further back, the timeline begins with the next tick', async () => {
    const { belfry, advance, runs } = createTestBelfry({ now: at('00:00:08'), roles: ['tick'] })
    await belfry.start()
    await belfry.schedules.put('within', { every: '1h', startsAt: at('00:00:00'), job: 'work' })
    await advance('1s')
    expect(await runs('within')).toMatchObject([{ tick: Date.parse(at('00:00:00')) }])
    await advance('10s')
    await belfry.schedules.put('beyond', { every: '1h', startsAt: at('00:00:00'), job: 'work' })
    await advance('1s')
    expect(await runs('beyond')).toEqual([])
    await advance('1h')
    expect(await runs('beyond')).toMatchObject([{ tick: Date.parse(at('01:00:00')) }])
    await belfry.stop()
  })
})
