/** A backfill of many ticks takes time in proportion to them, although each run waits for those before it. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { silentLogger } from '../../src/core/logger.js'
import type { Store } from '../../src/core/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { freshPostgres } from '../servers/fresh-postgres.js'
import { freshRedis } from '../servers/fresh-redis.js'

interface Opened {
  readonly store: Store
  close(): Promise<void>
}

const STORES: readonly (readonly [name: string, open: () => Promise<Opened>])[] = [
  ['memory', async () => ({ store: memory(), close: async () => {} })],
  ['SQLite', openSqlite],
  ['Postgres', freshPostgres],
  ['Redis', freshRedis],
]
const TICKS = 8_000

async function openSqlite(): Promise<Opened> {
  return { store: sqlite({ path: join(mkdtempSync(join(tmpdir(), 'backfill-')), 'belfry.db') }), close: async () => {} }
}

describe.each(STORES)('on %s', (_, open) => {
  it(`${TICKS} ticks take seconds`, { timeout: 120_000 }, async () => {
    const { store, close } = await open()
    const belfry = createBelfry({ store, roles: [], logger: silentLogger })
    belfry.job('x', { run: () => {} })
    await belfry.start()
    await belfry.schedules.put('s', { cron: '* * * * * *', job: 'x' })
    const to = Math.floor((await belfry.now()).getTime() / 1_000 - 60) * 1_000
    const range = { from: new Date(to - (TICKS - 1) * 1_000), to: new Date(to) }
    const start = process.cpuUsage()
    const { runs } = await belfry.schedules.backfill('s', range)
    const { user, system } = process.cpuUsage(start)
    // SQLite used to take minutes of CPU for as many, because each run read all those before it.
    expect((user + system) / 1e6).toBeLessThan(10)
    expect(runs.filter(({ outcome }) => outcome === 'enqueued')).toHaveLength(TICKS)
    const { items: waiting } = await belfry.runs.list({ state: 'waiting', limit: 1 })
    const { items: ready } = await belfry.runs.list({ state: 'ready', limit: 2 })
    expect([waiting.length, ready.length]).toEqual([1, 1])
    const again = await belfry.schedules.backfill('s', range)
    expect(again.runs.every(({ outcome }) => outcome === 'duplicate')).toBe(true)
    await belfry.stop()
    await close()
  })
})
