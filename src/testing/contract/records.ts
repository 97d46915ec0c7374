import { expect } from 'vitest'
import { area, PAST_LEASE_MS, SHORT_LEASE_MS } from './scene.js'

const FORGET = { maxAgeMs: 86_400_000, maxRuns: 1_000, leaseAgeMs: 86_400_000, limit: 100 }

export const records = area('records', {
  'a record is found as it was written': async ({ store }) => {
    const body = { name: 'Ünïcode 🔔', list: [1, null, { deep: '\u0000 "quoted" \n' }] }
    const { written, record } = await store.records.put({ kind: 'token', id: 'a', body })
    expect(written).toBe(true)
    expect(record).toEqual({ kind: 'token', id: 'a', body, writtenAt: record.writtenAt })
    expect(Math.abs(record.writtenAt - (await store.now()))).toBeLessThan(60_000)
    expect(await store.records.get('token', 'a')).toEqual(record)
    expect(await store.records.get('token', 'b')).toBeUndefined()
    expect(await store.records.get('other', 'a')).toBeUndefined()
  },

  'the last write of a record wins': async ({ store }) => {
    await store.records.put({ kind: 'k', id: 'a', body: 1, ttlMs: 60_000 })
    const { written, record } = await store.records.put({ kind: 'k', id: 'a', body: 2 })
    expect(written).toBe(true)
    expect(record.expiresAt).toBeUndefined()
    expect(await store.records.get('k', 'a')).toEqual(record)
  },

  'of many writes with `ifAbsent`, one succeeds, and all return its record': async ({ store }) => {
    const writes = Array.from({ length: 10 }, (_, at) =>
      store.records.put({ kind: 'k', id: 'a', body: at, ifAbsent: true }),
    )
    const results = await Promise.all(writes)
    expect(results.filter(({ written }) => written)).toHaveLength(1)
    const winner = results.findIndex(({ written }) => written)
    for (const { record } of results) expect(record.body).toBe(winner)
  },

  'an expired record is not found, and can be written again': async ({ store, elapse }) => {
    const { record } = await store.records.put({ kind: 'k', id: 'a', body: 1, ttlMs: SHORT_LEASE_MS })
    expect(record.expiresAt).toBe(record.writtenAt + SHORT_LEASE_MS)
    expect(await store.records.get('k', 'a')).toEqual(record)
    await elapse(PAST_LEASE_MS)
    expect(await store.records.get('k', 'a')).toBeUndefined()
    expect(await store.records.list({ kind: 'k', limit: 10 })).toEqual({ items: [] })
    expect(await store.records.remove('k', 'a')).toBe(false)
    expect(await store.records.put({ kind: 'k', id: 'a', body: 2, ifAbsent: true })).toMatchObject({ written: true })
    expect(await store.records.get('k', 'a')).toMatchObject({ body: 2 })
  },

  'the records of a kind are listed in pages, in order of id, from either end': async ({ store }) => {
    const ids = ['a', 'B', 'a/1', '~', 'a-', 'aa', '10', '9']
    for (const id of ids) await store.records.put({ kind: 'k', id, body: id })
    await store.records.put({ kind: 'k2', id: 'elsewhere', body: null })
    const inOrder = [...ids].sort()
    for (const backwards of [false, true]) {
      const found: string[] = []
      for (let after: string | undefined; ; ) {
        const page = await store.records.list({
          kind: 'k',
          limit: 3,
          backwards,
          ...(after === undefined ? {} : { after }),
        })
        found.push(...page.items.map(({ id }) => id))
        expect(page.items.length).toBeLessThanOrEqual(3)
        if (page.next === undefined) break
        after = page.next
      }
      expect(found).toEqual(backwards ? [...inOrder].reverse() : inOrder)
    }
  },

  'a list leaves out expired records, and still fills its pages': async ({ store, elapse }) => {
    for (const id of ['a', 'b', 'c', 'd']) {
      await store.records.put({ kind: 'k', id, body: id, ...(id > 'b' ? {} : { ttlMs: SHORT_LEASE_MS }) })
    }
    await elapse(PAST_LEASE_MS)
    const { items, next } = await store.records.list({ kind: 'k', limit: 2 })
    expect(items.map(({ id }) => id)).toEqual(['c', 'd'])
    expect(next).toBeUndefined()
  },

  'a record can be removed once': async ({ store }) => {
    await store.records.put({ kind: 'k', id: 'a', body: 1 })
    expect(await store.records.remove('k', 'a')).toBe(true)
    expect(await store.records.remove('k', 'a')).toBe(false)
    expect(await store.records.get('k', 'a')).toBeUndefined()
    expect(await store.records.list({ kind: 'k', limit: 10 })).toEqual({ items: [] })
  },

  'pruning removes expired records up to its limit, and no others': async ({ store, elapse }) => {
    for (const id of ['a', 'b', 'c']) await store.records.put({ kind: 'k', id, body: 1, ttlMs: SHORT_LEASE_MS })
    await store.records.put({ kind: 'k', id: 'kept', body: 1 })
    await store.records.put({ kind: 'k', id: 'later', body: 1, ttlMs: 86_400_000 })
    await elapse(PAST_LEASE_MS)
    expect(await store.runs.prune({ ...FORGET, limit: 2 })).toBe(2)
    while ((await store.runs.prune(FORGET)) > 0);
    expect((await store.records.list({ kind: 'k', limit: 10 })).items.map(({ id }) => id)).toEqual(['kept', 'later'])
  },

  'names that do not sort the same everywhere are refused': async ({ store }) => {
    for (const id of ['', 'with space', 'ü', 'x'.repeat(256)]) {
      await expect(store.records.put({ kind: 'k', id, body: 1 })).rejects.toMatchObject({ code: 'NAME_INVALID' })
      await expect(store.records.put({ kind: id, id: 'a', body: 1 })).rejects.toMatchObject({ code: 'NAME_INVALID' })
    }
    await expect(store.records.list({ kind: 'k', limit: 0 })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  },
})
