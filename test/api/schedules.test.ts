import { describe, expect, it } from 'vitest'
import type { ScheduleFields } from '../../src/index.js'
import { createTestBelfry, type TestOptions } from '../../src/testing/index.js'

const NOW = '2026-01-01T00:00:00Z'

function setup(options: TestOptions = {}) {
  const kit = createTestBelfry({ now: NOW, ...options })
  const ran: string[] = []
  kit.belfry.job('note', {
    run: ({ payload, tick, run }) => void ran.push([run.origin, tick.toISOString().slice(11, 16), payload].join(' ')),
  })
  const ticks = async (id: string) =>
    (await kit.runs(id)).map(({ tick, state }) => `${new Date(tick ?? 0).toISOString().slice(11, 16)} ${state}`)
  return { ...kit, ran, ticks }
}

const hourly: ScheduleFields = { cron: '0 * * * *', job: 'note', payload: 'own' }

describe('schedules', () => {
  it('are put, read, listed by prefix page by page, and removed', async () => {
    const { belfry } = setup()
    await belfry.start()
    const made = await belfry.schedules.putMany(
      ['a/1', 'a/2', 'a/3', 'b/1'].map((id) => [id, { every: '1h', job: 'note' }] as const),
    )
    expect(made.map(({ id, state }) => [id, state])).toEqual(['a/1', 'a/2', 'a/3', 'b/1'].map((id) => [id, 'active']))
    expect(await belfry.schedules.get('a/1')).toMatchObject({
      description: 'Every hour',
      next: new Date('2026-01-01T01:00:00Z'),
    })
    const first = await belfry.schedules.list({ prefix: 'a/', limit: 2 })
    expect(first.items.map(({ id }) => id)).toEqual(['a/1', 'a/2'])
    const rest = await belfry.schedules.list({ prefix: 'a/', limit: 2, ...(first.next ? { after: first.next } : {}) })
    expect(rest.items.map(({ id }) => id)).toEqual(['a/3'])
    expect(rest.next).toBeUndefined()
    expect(await belfry.schedules.remove('a/1')).toBe(true)
    expect(await belfry.schedules.remove('a/1')).toBe(false)
    expect(await belfry.schedules.get('a/1')).toBeUndefined()
  })

  it('fire on time when they are put long before, also on instances that rarely poll', async () => {
    const { belfry, advance, runs } = setup({ poll: '1d' })
    await belfry.start()
    await advance('90s')
    for (const minutes of [1, 2, 10, 90]) {
      await belfry.schedules.put(`in ${minutes}`, { every: `${minutes}m`, job: 'note', times: 1, onFinish: 'keep' })
    }
    await advance('2h')
    for (const minutes of [1, 2, 10, 90]) {
      const [run] = await runs(`in ${minutes}`)
      expect((run?.startedAt ?? 0) - Date.parse(NOW) - 90_000).toBe(minutes * 60_000)
    }
  })

  it('get generated ids from add, in creation order', async () => {
    const { belfry } = setup()
    await belfry.start()
    const first = await belfry.schedules.add({ every: '1h', job: 'note' }, { prefix: 'user/7/' })
    await expect.poll(async () => (await belfry.schedules.add(hourly)).id.slice(0, 13)).not.toBe(first.id.slice(7, 20))
    const last = await belfry.schedules.add({ every: '2h', job: 'note' }, { prefix: 'user/7/' })
    expect(first.id).toMatch(/^user\/7\/[0-9a-f-]{36}$/)
    expect(first).toEqual({ ...(await belfry.schedules.get(first.id)), outcome: 'created' })
    const { items } = await belfry.schedules.list({ prefix: 'user/7/' })
    expect(items.map(({ id }) => id)).toEqual([first.id, last.id])
  })

  it('refuse a write or removal that is based on an old version', async () => {
    const { belfry } = setup()
    await belfry.start()
    const first = await belfry.schedules.put('a', hourly, { ifVersion: 0 })
    await expect(belfry.schedules.put('a', hourly, { ifVersion: 0 })).rejects.toMatchObject({
      code: 'VERSION_CONFLICT',
    })
    const second = await belfry.schedules.put('a', { ...hourly, payload: 'new' }, { ifVersion: first.version })
    expect(second.version).toBeGreaterThan(first.version)
    await expect(belfry.schedules.remove('a', { ifVersion: first.version })).rejects.toThrow(
      `schedule "a" was to have version ${first.version}, but it has version ${second.version}: read it again`,
    )
    expect(await belfry.schedules.remove('a', { ifVersion: second.version })).toBe(true)
    // A recreated schedule gets a version that no earlier one had.
    expect((await belfry.schedules.put('a', hourly)).version).toBeGreaterThan(second.version)
  })

  it('are not written when put without a change', async () => {
    const { belfry, advance } = setup()
    await belfry.start()
    const first = await belfry.schedules.put('a', { every: '15m', job: 'note' })
    await advance('10m')
    const again = await belfry.schedules.put('a', { every: '15m', job: 'note' })
    expect(again).toEqual({ ...first, outcome: 'unchanged' })
  })

  it('finish after the given number of ticks', async () => {
    const { belfry, advance, ran } = setup()
    await belfry.start()
    await belfry.schedules.put('a', { every: '1h', job: 'note', times: 3, onFinish: 'keep' })
    await advance('10h')
    expect(ran).toHaveLength(3)
    expect(await belfry.schedules.get('a')).toMatchObject({ state: 'finished', next: undefined })
  })

  it('are pruned with their history after the last tick, unless they are to be kept', async () => {
    const { belfry, advance } = setup({ history: { maxAge: '7d' } })
    belfry.schedule('declared', { at: '2026-01-01T01:00:00Z', job: 'note', onFinish: 'keep' })
    await belfry.start()
    await belfry.schedules.put('goes', { at: '2026-01-01T01:00:00Z', job: 'note' })
    await belfry.schedules.put('stays', { at: '2026-01-01T01:00:00Z', job: 'note', onFinish: 'keep' })
    await advance('1d')
    expect((await belfry.schedules.list()).items.map(({ id }) => id)).toEqual(['declared', 'goes', 'stays'])
    await advance('8d')
    expect((await belfry.schedules.list()).items.map(({ id }) => id)).toEqual(['declared', 'stays'])
  })
})

describe('trigger', () => {
  it('runs a schedule now, with its payload or another, and leaves its timeline unchanged', async () => {
    const { belfry, advance, ran } = setup()
    await belfry.start()
    await belfry.schedules.put('a', { ...hourly, times: 2 })
    await advance('10m')
    const before = await belfry.schedules.get('a')
    const { run } = await belfry.schedules.trigger('a')
    await belfry.schedules.trigger('a', { payload: 'other' })
    await advance('1s')
    expect(ran).toEqual(['trigger 00:10 own', 'trigger 00:10 other'])
    expect(await belfry.schedules.get('a')).toEqual(before)
    expect(await belfry.runs.get(run)).toMatchObject({ origin: 'trigger', schedule: 'a', state: 'succeeded' })
    await advance('5h')
    expect(ran.slice(2)).toEqual(['tick 01:00 own', 'tick 02:00 own'])
  })

  it('works on a paused schedule, and can be told to respect the overlap policy', async () => {
    const { belfry, advance } = createTestBelfry({ now: NOW })
    belfry.job('slow', { run: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)) })
    await belfry.start()
    await belfry.schedules.put('a', { every: '1h', job: 'slow' })
    await belfry.schedules.pause('a')
    const first = await belfry.schedules.trigger('a')
    await advance('1s')
    expect(await belfry.schedules.trigger('a', { overlap: 'skip' })).toEqual({ outcome: 'busy', run: first.run })
    const queued = await belfry.schedules.trigger('a', { overlap: 'queue-one' })
    expect(queued.outcome).toBe('enqueued')
    expect(await belfry.schedules.trigger('a', { overlap: 'queue-one' })).toEqual({ outcome: 'busy', run: queued.run })
    expect(await belfry.runs.get(queued.run)).toMatchObject({ state: 'waiting', waitsFor: 'overlap' })
    await expect(belfry.schedules.trigger('nobody')).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' })
  })
})

describe('backfill', () => {
  it('runs the ticks of a past range one after another, oldest first, and each only once when it is repeated', async () => {
    const { belfry, advance, ran, runs } = setup()
    await belfry.start()
    await belfry.schedules.put('a', hourly)
    await advance('5h30m')
    expect(ran).toHaveLength(5)
    const range = { from: '2026-01-01T01:00:00Z', to: '2026-01-01T03:59:00Z' }
    const first = await belfry.schedules.backfill('a', range)
    expect(first.runs.map(({ outcome }) => outcome)).toEqual(['enqueued', 'enqueued', 'enqueued'])
    await advance('1m')
    expect(ran.slice(5)).toEqual(['backfill 01:00 own', 'backfill 02:00 own', 'backfill 03:00 own'])
    const again = await belfry.schedules.backfill('a', range)
    expect(again.runs).toEqual(first.runs.map(({ run }) => ({ outcome: 'duplicate', run })))
    const named = await belfry.schedules.backfill('a', { ...range, name: 'second try' })
    expect(named.runs.map(({ outcome }) => outcome)).toEqual(['enqueued', 'enqueued', 'enqueued'])
    await advance('1m')
    expect(await runs('a')).toHaveLength(5 + 3 + 3)
    expect((await belfry.schedules.get('a'))?.next).toEqual(new Date('2026-01-01T06:00:00Z'))
  })

  it('runs one tick at a time by default', async () => {
    const { belfry, advance, clock } = createTestBelfry({ now: NOW })
    let [now, most, done] = [0, 0, 0]
    belfry.job('slow', {
      run: async () => {
        now += 1
        most = Math.max(most, now)
        await new Promise<void>((resolve) => clock.after(1_000, resolve))
        now -= 1
        done += 1
      },
    })
    await belfry.start()
    await belfry.schedules.put('a', { cron: '* * * * *', job: 'slow', missed: 'skip' })
    await belfry.schedules.pause('a')
    await advance('10m')
    await belfry.schedules.backfill('a', { from: '2026-01-01T00:01:00Z', to: '2026-01-01T00:08:00Z' })
    await advance('1m')
    expect([done, most]).toEqual([8, 1])
    await belfry.schedules.backfill('a', {
      from: '2026-01-01T00:01:00Z',
      to: '2026-01-01T00:08:00Z',
      name: 'at once',
      overlap: 'allow',
    })
    await advance('1m')
    expect([done, most]).toEqual([16, 8])
  })

  it('is refused for the future, for a range that ends before it begins, and for an unknown schedule', async () => {
    const { belfry, runs } = setup()
    await belfry.start()
    await belfry.schedules.put('a', hourly)
    const future = { from: '2026-01-01T00:00:00Z', to: '2026-01-01T09:00:00Z' }
    await expect(belfry.schedules.backfill('a', future)).rejects.toThrow(/ends in the future, at 2026-01-01T09:00:00Z/)
    const backwards = { from: '2025-12-02T00:00:00Z', to: '2025-12-01T00:00:00Z' }
    await expect(belfry.schedules.backfill('a', backwards)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    const years = { from: '2000-01-01T00:00:00Z', to: '2020-01-01T00:00:00Z' }
    await expect(belfry.schedules.backfill('a', years)).rejects.toThrow(/more than 100000 ticks; split it/)
    await expect(belfry.schedules.backfill('b', backwards)).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' })
    expect(await runs('a')).toEqual([])
  })
})

describe('pause and resume', () => {
  it('stop and restart a timeline, with a reason; the ticks in between are skipped as one range', async () => {
    const { belfry, advance, ran, store } = setup()
    await belfry.start()
    await belfry.schedules.put('a', { ...hourly, missed: 'all' })
    await advance('90m')
    expect(await belfry.schedules.pause('a', 'the printer is on fire')).toMatchObject({
      state: 'paused',
      pauseNote: 'the printer is on fire',
      next: undefined,
    })
    await advance('3h')
    expect(await belfry.schedules.pause('a', 'and out of paper')).toMatchObject({ pauseNote: 'and out of paper' })
    expect(ran).toEqual(['tick 01:00 own'])
    const resumed = await belfry.schedules.resume('a')
    expect(resumed).toMatchObject({ state: 'active', next: new Date('2026-01-01T05:00:00Z') })
    expect(resumed.pauseNote).toBeUndefined()
    await advance('1h')
    expect(ran).toEqual(['tick 01:00 own', 'tick 05:00 own'])
    const skips = await store.schedules.skips('a', 0, Number.MAX_SAFE_INTEGER, 10)
    expect(skips).toMatchObject([{ count: 3, reason: 'paused', from: Date.parse('2026-01-01T02:00:00Z') }])
  })

  it('survive a put, and skip no tick after the resume', async () => {
    const { belfry, advance, ran } = setup()
    await belfry.start()
    await belfry.schedules.put('a', { ...hourly, times: 1 })
    // The next tick was recorded ahead; the pause takes it back.
    await advance('59m59s500ms')
    await belfry.schedules.pause('a')
    await belfry.schedules.put('a', { ...hourly, times: 1, payload: 'new' })
    expect(await belfry.schedules.get('a')).toMatchObject({ state: 'paused' })
    await belfry.schedules.resume('a')
    await advance('3h')
    expect(ran).toEqual(['tick 01:00 new'])
  })

  it('are refused for an unknown schedule', async () => {
    const { belfry } = setup()
    await belfry.start()
    for (const act of [belfry.schedules.pause('nobody'), belfry.schedules.resume('nobody')]) {
      await expect(act).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND', message: 'there is no schedule "nobody"' })
    }
  })
})

describe('preview', () => {
  it('lists the next ticks with jitter, for a stored schedule and for an unsaved one', async () => {
    const { belfry, advance, clock } = createTestBelfry({ now: NOW })
    const started: number[] = []
    belfry.job('note', { run: () => void started.push(clock.now()) })
    await belfry.start()
    await belfry.schedules.put('a', { cron: '*/20 * * * *', jitter: '5m', job: 'note' })
    const previewed = await belfry.schedules.preview('a', { count: 4 })
    expect(previewed.map(({ at }) => at.toISOString().slice(11, 16))).toEqual(['00:20', '00:40', '01:00', '01:20'])
    await advance('1h30m')
    expect(started).toEqual(previewed.map(({ readyAt }) => readyAt.getTime()))
    expect(previewed.every(({ at, readyAt }) => readyAt >= at && readyAt.getTime() < at.getTime() + 300_000)).toBe(true)
    const draft = await belfry.schedules.preview({ every: '1h' }, { count: 2 })
    expect(draft.map(({ at }) => at.toISOString())).toEqual(['2026-01-01T02:30:00.000Z', '2026-01-01T03:30:00.000Z'])
    const later = await belfry.schedules.preview({ cron: '0 9 * * 1' }, { from: '2026-06-01T09:00:00Z', count: 1 })
    expect(later.map(({ at }) => at.toISOString())).toEqual(['2026-06-01T09:00:00.000Z'])
    expect((await belfry.schedules.list()).items.map(({ id }) => id)).toEqual(['a'])
  })

  it('lists no more ticks than a schedule has left', async () => {
    const { belfry, advance } = setup()
    await belfry.start()
    await belfry.schedules.put('a', { ...hourly, times: 3 })
    expect(await belfry.schedules.preview('a', { count: 10 })).toHaveLength(3)
    await advance('1h30m')
    expect(await belfry.schedules.preview('a', { count: 10 })).toHaveLength(2)
    // The next tick is recorded ahead and still upcoming.
    await advance('29m59s500ms')
    expect(await belfry.schedules.preview('a', { count: 10 })).toHaveLength(2)
    await advance('5h')
    expect(await belfry.schedules.preview('a', { count: 10 })).toEqual([])
  })

  it('refuses an invalid schedule, and ends where the schedule ends', async () => {
    const { belfry } = createTestBelfry({ now: NOW })
    await belfry.start()
    await expect(belfry.schedules.preview({ cron: '0 9 * *' })).rejects.toMatchObject({ code: 'EXPRESSION_SYNTAX' })
    const ends = await belfry.schedules.preview({ every: '1h', endsAt: '2026-01-01T02:30:00Z' })
    expect(ends).toHaveLength(2)
    expect(await belfry.schedules.preview({ every: '1h', times: 3 }, { count: 10 })).toHaveLength(3)
    expect(
      await belfry.schedules.preview({ every: '1h', times: 3 }, { count: 10, from: '2026-01-01T02:00:00Z' }),
    ).toHaveLength(2)
    await expect(belfry.schedules.preview('nobody')).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' })
  })
})

describe('apply', () => {
  it('creates, updates, leaves unchanged and prunes within its prefix', async () => {
    const { belfry } = setup()
    await belfry.start()
    await belfry.schedules.put('team/same', hourly)
    await belfry.schedules.put('team/changed', hourly)
    await belfry.schedules.put('team/gone', hourly)
    await belfry.schedules.put('other', hourly)
    const wanted = { 'team/same': hourly, 'team/changed': { ...hourly, payload: 'new' }, 'team/new': hourly }
    const options = { prune: true, prefix: 'team/' }
    const before = await belfry.schedules.list()
    const dry = await belfry.schedules.apply(wanted, { ...options, dryRun: true })
    expect(await belfry.schedules.list()).toEqual(before)
    const done = await belfry.schedules.apply(wanted, options)
    expect(done).toEqual(dry)
    expect(done.changes.map(({ id, change }) => [id, change])).toEqual([
      ['team/changed', 'update'],
      ['team/new', 'create'],
      ['team/gone', 'remove'],
    ])
    expect(done.changes[0]).toMatchObject({ before: { payload: 'own' }, after: { payload: 'new' } })
    expect(done.unchanged).toBe(1)
    expect((await belfry.schedules.list()).items.map(({ id }) => id)).toEqual([
      'other',
      'team/changed',
      'team/new',
      'team/same',
    ])
    expect(await belfry.schedules.apply(wanted, options)).toEqual({ changes: [], unchanged: 3 })
  })

  it('removes nothing without `prune`, and refuses `prune` without a prefix', async () => {
    const { belfry } = setup()
    await belfry.start()
    await belfry.schedules.put('a', hourly)
    expect((await belfry.schedules.apply({ b: hourly })).changes.map(({ change }) => change)).toEqual(['create'])
    await expect(belfry.schedules.apply({}, { prune: true })).rejects.toThrow(/prune needs a prefix/)
    await expect(belfry.schedules.apply({ c: hourly }, { prefix: 'team/' })).rejects.toThrow(
      'schedule "c" lies outside the prefix "team/"',
    )
    expect((await belfry.schedules.list()).items.map(({ id }) => id)).toEqual(['a', 'b'])
    await belfry.schedules.apply({}, { prune: true, prefix: '' })
    expect((await belfry.schedules.list()).items).toEqual([])
  })

  it('writes nothing when one of the schedules is invalid', async () => {
    const { belfry } = setup()
    await belfry.start()
    await belfry.schedules.put('gone', hourly)
    const wanted = { good: hourly, bad: { ...hourly, cron: '61 * * * *' } }
    await expect(belfry.schedules.apply(wanted, { prune: true, prefix: '' })).rejects.toThrow(/^schedule "bad": /)
    expect((await belfry.schedules.list()).items.map(({ id }) => id)).toEqual(['gone'])
  })
})
