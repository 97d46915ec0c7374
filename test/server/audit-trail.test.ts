import { describe, expect, it } from 'vitest'
import { type Logger, silentLogger } from '../../src/core/logger.js'
import type { RecordStore } from '../../src/core/store.js'
import { AuditTrail } from '../../src/server/audit/audit-trail.js'
import { memory } from '../../src/stores/memory/index.js'
import { manualClock } from '../../src/testing/index.js'

const ANA = { name: 'ana', role: 'operator' } as const

describe('the audit trail', () => {
  it('lists changes with their callers, newest first, page by page', async () => {
    const clock = manualClock(Date.UTC(2026, 0, 1))
    const trail = new AuditTrail(memory({ clock }).records, silentLogger, clock)
    for (let at = 0; at < 5; at += 1) await trail.write(ANA, 'schedule.put', `s/${at}`, { version: at })
    const first = await trail.list({ limit: 3 })
    expect(first.items.map(({ target }) => target)).toEqual(['s/4', 's/3', 's/2'])
    expect(first.items[0]).toMatchObject({
      caller: 'ana',
      role: 'operator',
      action: 'schedule.put',
      detail: { version: 4 },
    })
    const rest = await trail.list({ limit: 3, after: first.next ?? '' })
    expect(rest.items.map(({ target }) => target)).toEqual(['s/1', 's/0'])
    expect(rest.next).toBeUndefined()
  })

  it('stores concurrent changes in few records, and lists each change once for any page size', async () => {
    const clock = manualClock(Date.UTC(2026, 0, 1))
    const { records } = memory({ clock })
    const trail = new AuditTrail(records, silentLogger, clock)
    const all = Array.from({ length: 60 }, (_, at) => `s/${String(at).padStart(2, '0')}`)
    await Promise.all(all.map((target) => trail.write(ANA, 'schedule.put', target, { target })))
    expect((await records.list({ kind: 'audit', limit: 100 })).items.length).toBeLessThan(10)
    for (const [limit, prefix] of [
      [1, ''],
      [7, ''],
      [16, 's/'],
      [100, ''],
      [3, 's/1'],
    ] as const) {
      const targets: string[] = []
      for (let after: { after?: string } | undefined = {}; after !== undefined; ) {
        const { items, next } = await trail.list({
          limit,
          isWanted: ({ target }) => target.startsWith(prefix),
          ...after,
        })
        expect(items.length).toBeLessThanOrEqual(limit)
        targets.push(...items.map(({ target }) => target))
        after = next === undefined ? undefined : { after: next }
      }
      expect(targets.sort()).toEqual(all.filter((target) => target.startsWith(prefix)))
    }
    const { items } = await trail.list({ limit: 100 })
    expect(new Set(items.map(({ id }) => id)).size).toBe(60)
    // A cursor that a client makes up is harmless: it only says where the page begins.
    for (const after of ['x.1', '.', '1.99999', '~.0'])
      expect((await trail.list({ limit: 5, after })).items).toBeDefined()
  })

  it('stores the details of a bulk change once, and lists each change in order', async () => {
    const { records } = memory()
    const trail = new AuditTrail(records)
    const [made, other] = [{ outcome: 'created' }, { outcome: 'created' }]
    const done = (from: number, to: number, detail?: typeof made) =>
      Array.from({ length: to - from }, (_, at) => trail.write(ANA, 'schedule.put', `s/${from + at}`, detail))
    const written = [...done(0, 400, made), ...done(400, 401), ...done(401, 500, made), ...done(500, 1_700, other)]
    await Promise.all([...written, trail.write({ name: 'bo', role: 'admin' }, 'schedule.put', 's/1700', other)])
    const { items: kept } = await records.list({ kind: 'audit', limit: 100 })
    const text = JSON.stringify(kept.map(({ body }) => body))
    expect(text.split('"outcome"').length).toBeLessThan(12)
    expect(Math.max(...kept.map(({ body }) => JSON.stringify(body).length))).toBeLessThan(64_000)
    const entries: { target: string; caller: string; detail?: unknown }[] = []
    for (let after: { after?: string } | undefined = {}; after !== undefined; ) {
      const { items, next } = await trail.list({ limit: 333, ...after })
      entries.unshift(...[...items].reverse())
      after = next === undefined ? undefined : { after: next }
    }
    expect(entries.map(({ target }) => target)).toEqual(Array.from({ length: 1_701 }, (_, at) => `s/${at}`))
    expect(entries.filter(({ detail }) => detail === undefined).map(({ target }) => target)).toEqual(['s/400'])
    expect(entries.filter(({ caller }) => caller === 'bo').map(({ target }) => target)).toEqual(['s/1700'])
  })

  it('splits records that would become too large', async () => {
    const { records } = memory()
    const trail = new AuditTrail(records)
    const detail = { why: 'x'.repeat(3_000) }
    await Promise.all(Array.from({ length: 200 }, (_, at) => trail.write(ANA, 'schedule.put', `s/${at}`, detail)))
    const { items } = await records.list({ kind: 'audit', limit: 100 })
    expect(Math.max(...items.map(({ body }) => JSON.stringify(body).length))).toBeLessThan(100_000)
    expect(items.length).toBeLessThan(20)
    expect((await trail.list({ limit: 500 })).items).toHaveLength(200)
  })

  it('does not delay changes until 1,000 are unwritten; list() and settled() wait for the writes', async () => {
    const { records } = memory()
    let [goOn, isHeld] = [() => {}, true]
    const held = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const slow: RecordStore = {
      ...records,
      list: (query) => records.list(query),
      put: async (write) => {
        if (isHeld) await held
        return records.put(write)
      },
    }
    const trail = new AuditTrail(slow)
    for (let at = 0; at < 1_000; at += 1) await trail.note(ANA, 'freeze', String(at))
    const crowded = trail.note(ANA, 'freeze', 'one more').then(() => 'kept')
    expect(await Promise.race([crowded, new Promise((resolve) => setTimeout(resolve, 20))])).toBeUndefined()
    const listed = trail.list({ limit: 1 })
    isHeld = false
    goOn()
    expect((await listed).items[0]?.target).toBe('one more')
    await trail.settled()
    expect(await crowded).toBe('kept')
  })

  it('finds the wanted entries, and reads a bounded number of entries per page', async () => {
    const clock = manualClock(Date.UTC(2026, 0, 1))
    const trail = new AuditTrail(memory({ clock }).records, silentLogger, clock)
    await trail.write(ANA, 'schedule.put', 'billing/1')
    for (let at = 0; at < 1_500; at += 1) await trail.write(ANA, 'schedule.put', `shop/${at}`)
    const targets: string[] = []
    let [after, pages]: [string | undefined, number] = [undefined, 0]
    do {
      const isWanted = ({ target }: { target: string }) => target.startsWith('billing/')
      const page = await trail.list({ limit: 100, isWanted, ...(after === undefined ? {} : { after }) })
      targets.push(...page.items.map(({ target }) => target))
      after = page.next
      pages += 1
    } while (after !== undefined)
    expect({ targets, pages }).toEqual({ targets: ['billing/1'], pages: 2 })
  })

  it('is ordered by the store’s clock, whatever the processes’ clocks show', async () => {
    const [theirs, early, late] = [manualClock(Date.UTC(2026, 0, 1)), manualClock(0), manualClock(Date.UTC(2050, 0, 1))]
    const { records } = memory({ clock: theirs })
    const [one, other] = [early, late].map((clock) => new AuditTrail(records, silentLogger, clock))
    for (const [at, trail] of [one, other, one, other].entries()) {
      await trail?.write(ANA, 'freeze', String(at))
      for (const clock of [theirs, early, late]) await clock.advance(10)
    }
    const { items } = (await one?.list({ limit: 10 })) ?? { items: [] }
    expect(items.map(({ target }) => target)).toEqual(['3', '2', '1', '0'])
  })

  it('contains neither payloads nor secrets', async () => {
    const trail = new AuditTrail(memory().records)
    const token = `belfry_aaaaaaaaaaaa_${'x'.repeat(43)}`
    const detail = { to: { payload: { card: 4111 } }, password: 'p', note: `see ${token}`, url: 'redis://me:pw@host' }
    await trail.write(ANA, 'schedule.put', 's', detail)
    await trail.write(ANA, 'schedule.put', 's', { note: 'x'.repeat(10_000) })
    const { items } = await trail.list({ limit: 2 })
    expect(items[1]?.detail).toEqual({
      to: { payload: '[redacted]' },
      password: '[redacted]',
      note: 'see [redacted]',
      url: 'redis://me:[redacted]@host',
    })
    expect(JSON.stringify(items[0]?.detail).length).toBeLessThan(5_000)
  })

  it('contains a change once when the answer to its write was lost', async () => {
    const { records } = memory()
    let isLost = true
    const shaky: RecordStore = {
      ...records,
      list: (query) => records.list(query),
      put: async (write) => {
        const written = await records.put(write)
        if (write.kind === 'audit' && isLost) {
          isLost = false
          throw new Error('no answer')
        }
        return written
      },
    }
    const trail = new AuditTrail(shaky)
    await trail.write(ANA, 'freeze', 'store')
    expect(isLost).toBe(false)
    expect((await trail.list({ limit: 10 })).items).toHaveLength(1)
  })

  it('retries a failed write, and logs what it could not store: the change itself was made', async () => {
    const { records } = memory()
    let failures = 2
    const shaky: RecordStore = {
      ...records,
      list: (query) => records.list(query),
      put: async (write) => {
        failures -= 1
        if (failures >= 0) throw new Error('gone')
        return records.put(write)
      },
    }
    const said: object[] = []
    const log: Logger = { ...silentLogger, error: (fields) => said.push(fields) }
    const trail = new AuditTrail(shaky, log)
    await trail.write(ANA, 'thaw', 'store')
    expect((await trail.list({ limit: 1 })).items).toHaveLength(1)
    expect(said).toEqual([])
    failures = 100
    await trail.write(ANA, 'freeze', 'store')
    expect(said).toEqual([expect.objectContaining({ audit: expect.objectContaining({ action: 'freeze' }) })])
  })
})
