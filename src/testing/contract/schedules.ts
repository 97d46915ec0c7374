import { expect } from 'vitest'
import { area, definition, ODD_NAMES } from './scene.js'

export const schedules = area('schedules', {
  'a new schedule starts at the store’s now and says when it ticks next': async ({ store, put }) => {
    const before = await store.now()
    const schedule = await put('a', { timeline: { every: 60_000 } })
    const after = await store.now()
    expect(schedule.createdAt).toBeGreaterThanOrEqual(before)
    expect(schedule.createdAt).toBeLessThanOrEqual(after)
    expect(schedule).toMatchObject({ id: 'a', anchor: schedule.createdAt, cursor: schedule.createdAt })
    expect(schedule.nextAt).toBe(schedule.createdAt + 60_000)
    expect(schedule.dueAt).toBe(schedule.nextAt)
    expect(await store.schedules.get('a')).toEqual(schedule)
  },

  'a new schedule starts at the store’s now, however long ago the handle last heard of it': async (scene) => {
    const { store } = scene
    for (const [at, ms] of [0, 0, 120_000, 0, 3_600_000].entries()) {
      await scene.elapse(ms)
      const id = `new/${at}`
      const before = await store.now()
      const [result] = await store.schedules.put([{ id, definition: definition({ timeline: { every: 60_000 } }) }])
      const after = await store.now()
      expect(result).toMatchObject({ outcome: 'created', schedule: { id } })
      expect(result?.schedule?.createdAt).toBeGreaterThanOrEqual(before)
      expect(result?.schedule?.createdAt).toBeLessThanOrEqual(after)
      expect(result?.schedule?.nextAt).toBe((result?.schedule?.createdAt ?? 0) + 60_000)
      expect(await store.schedules.get(id)).toEqual(result?.schedule)
    }
  },

  'many new schedules are made at once, each with a version of its own': async ({ store }) => {
    const ids = Array.from({ length: 60 }, (_, at) => `new/${String(at).padStart(2, '0')}`)
    const puts = ids.map((id) => store.schedules.put([{ id, definition: definition() }]))
    const results = (await Promise.all(puts)).flat()
    expect(results.map(({ outcome, schedule }) => [outcome, schedule?.id])).toEqual(ids.map((id) => ['created', id]))
    expect(new Set(results.map(({ schedule }) => schedule?.version)).size).toBe(60)
    const { items } = await store.schedules.list({ limit: 100 })
    expect(items).toEqual(results.map(({ schedule }) => schedule))
  },

  'there is nothing under an unknown id': async ({ store }) => {
    expect(await store.schedules.get('nobody')).toBeUndefined()
    expect(await store.schedules.pause('nobody', undefined)).toBeUndefined()
    expect(await store.schedules.resume('nobody')).toBeUndefined()
    expect(await store.schedules.remove(['nobody'])).toEqual(['missing'])
    expect(await store.schedules.skips('nobody', 0, Number.MAX_SAFE_INTEGER, 10)).toEqual([])
  },

  'apply puts its writes and removes its removals': async (scene) => {
    await scene.put('a', { payload: 1 })
    await scene.put('b')
    const results = await scene.store.schedules.apply(
      [
        { id: 'a', definition: definition({ payload: 2 }) },
        { id: 'c', definition: definition() },
      ],
      ['b', 'nobody'],
    )
    expect(results.map(({ outcome }) => outcome)).toEqual(['updated', 'created'])
    const { items } = await scene.store.schedules.list({ limit: 10 })
    expect(items.map(({ id }) => id)).toEqual(['a', 'c'])
    expect(items[0]?.definition.payload).toBe(2)
    expect(await scene.store.schedules.apply([], ['a'])).toEqual([])
    expect(await scene.store.schedules.get('a')).toBeUndefined()
    expect(await scene.store.schedules.apply([], [])).toEqual([])
  },

  'apply changes nothing when one of its writes is refused': async (scene) => {
    await scene.put('a')
    const never = definition({ timeline: { at: [1_000] } })
    const applied = scene.store.schedules.apply(
      [
        { id: 'b', definition: definition() },
        { id: 'c', definition: never },
      ],
      ['a'],
    )
    await expect(applied).rejects.toThrow()
    const { items } = await scene.store.schedules.list({ limit: 10 })
    expect(items.map(({ id }) => id)).toEqual(['a'])
  },

  'every field of a definition is stored': async (scene) => {
    const rich = definition({
      timeline: { cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', dst: { gap: 'skip' } },
      startsAt: 1_000,
      endsAt: 9_000_000_000_000,
      target: { sink: 'kafka', options: { topic: 'orders', headers: { a: [1, 2.5, null, 'ü'] } } },
      payload: { text: '✓ "quoted"', nested: { deep: [true, false] } },
      key: { name: 'k', limit: 3, whenBusy: 'skip' },
      ...{ overlap: 'queue-one', deadlineMs: 5_000, jitterMs: 30, times: 7, priority: -3, keep: 'failures' },
      missed: { policy: 'all', withinMs: 1_000, max: 5, graceMs: 10 },
      ...{ onFinish: 'remove', app: 'shop' },
    })
    await scene.store.schedules.put([{ id: 'rich', definition: rich }])
    const schedule = await scene.schedule('rich')
    expect(schedule.definition).toEqual(rich)
    expect(schedule.remaining).toBe(7)
  },

  'putting an equal definition writes nothing': async ({ store, put }) => {
    const first = await put('a', { payload: { b: 1, a: 2 } })
    const again = await store.schedules.put([{ id: 'a', definition: definition({ payload: { a: 2, b: 1 } }) }])
    expect(again).toEqual([{ outcome: 'unchanged', schedule: first }])
    expect(await store.schedules.get('a')).toEqual(first)
  },

  'a put that leaves the timeline alone keeps anchor and cursor': async (scene) => {
    const first = await scene.put('a', { timeline: { every: 60_000 } })
    await scene.elapse(20)
    const second = await scene.put('a', { timeline: { every: 60_000 }, payload: 'new' })
    const { anchor, cursor, nextAt, createdAt } = first
    expect(second).toMatchObject({ anchor, cursor, nextAt, createdAt })
    expect(second.definition.payload).toBe('new')
    expect(second.version).toBeGreaterThan(first.version)
  },

  'a changed timeline starts at now': async (scene) => {
    const first = await scene.put('a', { timeline: { every: 60_000 } })
    await scene.elapse(20)
    const second = await scene.put('a', { timeline: { every: 30_000 } })
    expect(second.anchor).toBeGreaterThanOrEqual(first.anchor + 20)
    expect(second.nextAt).toBe(second.anchor + 30_000)
    expect(second.createdAt).toBe(first.createdAt)
  },

  'a write based on an old version is refused and changes nothing': async (scene) => {
    const first = await scene.put('a')
    const second = await scene.put('a', { payload: 2 })
    const write = { id: 'a', definition: definition({ payload: 3 }), ifVersion: first.version }
    expect(await scene.store.schedules.put([write])).toEqual([{ outcome: 'conflict', schedule: second }])
    expect(await scene.schedule('a')).toEqual(second)
    const [result] = await scene.store.schedules.put([{ ...write, ifVersion: second.version }])
    expect(result?.outcome).toBe('updated')
  },

  'a write that expects no schedule is refused when there is one, and the reverse': async ({ store, put }) => {
    const first = await put('a')
    const writes = [
      { id: 'a', definition: definition({ payload: 2 }), ifVersion: 0 },
      { id: 'b', definition: definition(), ifVersion: 0 },
      { id: 'c', definition: definition(), ifVersion: 12 },
    ]
    const results = await store.schedules.put(writes)
    expect(results.map(({ outcome }) => outcome)).toEqual(['conflict', 'created', 'conflict'])
    expect(results[0]).toEqual({ outcome: 'conflict', schedule: first })
    expect(results[2]).toMatchObject({ schedule: undefined })
    expect(await store.schedules.get('c')).toBeUndefined()
  },

  'of two writers with the same version, one succeeds': async ({ store, put }) => {
    const { version } = await put('a')
    const write = (payload: number) => [{ id: 'a', definition: definition({ payload }), ifVersion: version }]
    const results = await Promise.all([store.schedules.put(write(1)), store.schedules.put(write(2))])
    expect(results.map(([result]) => result?.outcome).sort()).toEqual(['conflict', 'updated'])
  },

  'a definition that can never fire throws, and nothing of the batch is written': async ({ store, put }) => {
    const first = await put('a')
    const now = await store.now()
    const writes = [
      { id: 'a', definition: definition({ payload: 2 }) },
      { id: 'b', definition: definition() },
      { id: 'c', definition: definition({ timeline: { at: [now - 3_600_000] } }) },
    ]
    await expect(store.schedules.put(writes)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await store.schedules.get('a')).toEqual(first)
    expect(await store.schedules.get('b')).toBeUndefined()
    expect(await store.schedules.get('c')).toBeUndefined()
  },

  'a schedule that is created again has a new version': async ({ store, put }) => {
    const first = await put('a')
    expect(await store.schedules.remove(['a'], first.version)).toEqual(['removed'])
    const second = await put('a')
    expect(second.version).toBeGreaterThan(first.version)
    expect(await store.schedules.remove(['a'], first.version)).toEqual(['conflict'])
    expect(await store.schedules.get('a')).toEqual(second)
  },

  'lists are in order of id, by prefix, page by page': async ({ store, put }) => {
    for (const id of ['b/2', 'a/1', 'b/10', 'c/1', 'b/1', 'b']) await put(id)
    const all = await store.schedules.list({ limit: 10 })
    expect(all.items.map(({ id }) => id)).toEqual(['a/1', 'b', 'b/1', 'b/10', 'b/2', 'c/1'])
    expect(all.next).toBeUndefined()
    const first = await store.schedules.list({ prefix: 'b/', limit: 2 })
    expect(first.items.map(({ id }) => id)).toEqual(['b/1', 'b/10'])
    const second = await store.schedules.list({ prefix: 'b/', limit: 2, ...(first.next ? { after: first.next } : {}) })
    expect(second.items.map(({ id }) => id)).toEqual(['b/2'])
    expect(second.next).toBeUndefined()
    const count = (prefix: string, limit: number) => store.schedules.count({ prefix, limit })
    expect([await count('b/', 10), await count('b/', 2), await count('', 10), await count('x', 10)]).toEqual([
      3, 2, 6, 0,
    ])
    for (const id of ODD_NAMES) await put(id)
    expect(await count('o/', 100)).toBe(ODD_NAMES.length)
    const odd: string[] = []
    for (let after: { after?: string } | undefined = {}; after !== undefined; ) {
      const { items, next } = await store.schedules.list({ prefix: 'o/', limit: 1, ...after })
      odd.push(...items.map(({ id }) => id))
      after = next === undefined || odd.length > ODD_NAMES.length ? undefined : { after: next }
    }
    expect(odd.sort()).toEqual([...ODD_NAMES].sort())
  },

  'lists are filtered by state, target, app and missing stamp': async (scene) => {
    await scene.put('active')
    await scene.put('paused', { target: { job: 'other' } })
    await scene.store.schedules.pause('paused', undefined)
    await scene.putTicks('finished', [-10], { target: { sink: 'kafka' } })
    await scene.put('declared', { app: 'shop' })
    await scene.put('unstamped', { key: 'unstamped' })
    await scene.advance()
    const list = async (query: object) =>
      (await scene.store.schedules.list({ limit: 10, ...query })).items.map(({ id }) => id)
    expect(await list({ state: 'paused' })).toEqual(['paused'])
    expect(await list({ state: 'finished' })).toEqual(['finished'])
    expect(await list({ state: 'active' })).toEqual(['active', 'declared', 'unstamped'])
    expect(await list({ job: 'other' })).toEqual(['paused'])
    expect(await list({ sink: 'kafka' })).toEqual(['finished'])
    expect(await list({ app: 'shop' })).toEqual(['declared'])
    expect(await list({ unstamped: true })).toEqual(['unstamped'])
    await scene.put('unstamped', { key: { name: 'k', limit: 1, whenBusy: 'wait' } })
    expect(await list({ unstamped: true })).toEqual([])
  },

  'a list with a small `look` finds all schedules, page by page': async (scene) => {
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await scene.put(id)
    for (const id of ['a', 'd', 'g']) await scene.store.schedules.pause(id, undefined)
    for (const [look, limit] of [
      [1, 10],
      [2, 1],
      [3, 2],
      [100, 2],
    ] as const) {
      const found: string[] = []
      for (let after: { after?: string } | undefined = {}; after !== undefined; ) {
        const { items, next } = await scene.store.schedules.list({ state: 'paused', look, limit, ...after })
        expect(items.length).toBeLessThanOrEqual(limit)
        found.push(...items.map(({ id }) => id))
        after = next === undefined ? undefined : { after: next }
      }
      expect(found).toEqual(['a', 'd', 'g'])
    }
  },

  'returned objects are copies': async (scene) => {
    const payload = { list: [1] }
    await scene.put('a', { payload })
    payload.list.push(2)
    expect((await scene.schedule('a')).definition.payload).toEqual({ list: [1] })
    const id = await scene.enqueue({ payload })
    payload.list.push(3)
    const run = await scene.run(id)
    expect(run.payload).toEqual({ list: [1, 2] })
    try {
      Object.assign(run, { state: 'succeeded' })
      ;(run.payload as { list: number[] }).list.push(4)
    } catch {
      // The store may freeze the object instead of copying it.
    }
    expect(await scene.run(id)).toMatchObject({ state: 'ready', payload: { list: [1, 2] } })
  },
})
