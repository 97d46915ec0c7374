/** What the compiler accepts and refuses. `tsc` checks this file; a comment that expects an error fails when there is none. */
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { type Belfry, createBelfry, type Json, type Run } from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { type PostgresTransaction, postgres } from '../../src/stores/postgres/index.js'
import { type BetterSqliteHandle, type SqliteTransaction, sqlite } from '../../src/stores/sqlite/index.js'

/** The compiler reads it; it never runs. */
function never(_check: () => unknown): void {}

const belfry = createBelfry({ store: memory() })
const digest = belfry.job('digest', {
  payload: z.object({ region: z.string(), user: z.object({ id: z.number() }), days: z.number().default(1) }),
  exclusive: { by: ['region', 'user.id'] },
  run: async ({ payload }) => ({ sent: payload.days, at: payload.region }),
})
const sweep = belfry.job('sweep', { run: () => 7 })
const mail = belfry.job<{ to: string }>('mail', { run: ({ payload }) => payload.to.length })

const PAYLOAD = { region: 'eu', user: { id: 1 } }

describe('a declared schedule', () => {
  it('has exactly one of cron, every and at', () => {
    never(() => {
      belfry.schedule('a', { cron: '0 9 * * *', timezone: 'Europe/Berlin', dst: { gap: 'skip' }, job: sweep })
      belfry.schedule('a', { every: '1h', job: 'sweep' })
      belfry.schedule('a', { at: ['2030-01-01', new Date()], timezone: 'UTC', job: sweep })
      // @ts-expect-error none
      belfry.schedule('a', { job: sweep })
      // @ts-expect-error two
      belfry.schedule('a', { cron: '0 9 * * *', every: '1h', job: sweep })
      // @ts-expect-error an interval has no zone
      belfry.schedule('a', { every: '1h', timezone: 'Europe/Berlin', job: sweep })
    })
  })

  it('has exactly one of job and to', () => {
    never(() => {
      belfry.schedule('a', { every: '1h', to: 'orders', toOptions: { key: 'k' }, payload: 1 })
      // @ts-expect-error none
      belfry.schedule('a', { every: '1h' })
      // @ts-expect-error two
      belfry.schedule('a', { every: '1h', job: sweep, to: 'orders' })
      // @ts-expect-error options of a sink, and no sink
      belfry.schedule('a', { every: '1h', job: sweep, toOptions: {} })
      // @ts-expect-error a function is no job
      belfry.schedule('a', { every: '1h', job: () => {} })
    })
  })

  it('has the payload that its job asks for', () => {
    never(() => {
      belfry.schedule('a', { every: '1h', job: digest, payload: PAYLOAD })
      belfry.schedule('a', { every: '1h', job: 'digest', payload: { anything: true } })
      // @ts-expect-error it is required
      belfry.schedule('a', { every: '1h', job: digest })
      // @ts-expect-error it is of another type
      belfry.schedule('a', { every: '1h', job: digest, payload: { region: 1 } })
      // @ts-expect-error it is required
      belfry.schedule('a', { every: '1h', job: mail })
    })
  })
})

describe('a job', () => {
  it('has a key by paths of its payload', () => {
    never(() => {
      belfry.job<{ region: string; user?: { id: number } }>('a', { exclusive: { by: ['user.id'] }, run: () => {} })
      belfry.job('a', { exclusive: { by: ['anything'] }, run: () => {} })
      belfry.job<Record<string, string>>('a', { exclusive: { by: ['anything'] }, run: () => {} })
      // @ts-expect-error there is no such path
      belfry.job<{ region: string }>('a', { exclusive: { by: ['regoin'] }, run: () => {} })
      // @ts-expect-error there is no such path
      belfry.job<{ user: { id: number } }>('a', { exclusive: { by: ['user.name'] }, run: () => {} })
    })
  })

  it('gives its result to those who wait', () => {
    never(async () => {
      const { run } = await digest.enqueue(PAYLOAD)
      expectTypeOf((await belfry.runs.wait(run))?.result).toEqualTypeOf<{ sent: number; at: string } | undefined>()
      const swept = await belfry.runs.wait((await sweep.enqueue()).run)
      expectTypeOf(swept?.result).toEqualTypeOf<number | undefined>()
      expectTypeOf(await belfry.runs.wait('1-abc')).toEqualTypeOf<Run | undefined>()
      expectTypeOf((await belfry.runs.wait('1-abc'))?.result).toEqualTypeOf<Json | undefined>()
      // @ts-expect-error the payload is required
      await digest.enqueue()
    })
  })
})

describe('a transaction', () => {
  it('has the type of its store', () => {
    never(() => {
      createBelfry({ store: postgres({ url: 'postgres://db/x' }) }).job('a', {
        run: ({ transaction }) => transaction((tx) => expectTypeOf(tx).toEqualTypeOf<PostgresTransaction>()),
      })
      createBelfry({ store: sqlite({ path: 'x.db' }) }).job('a', {
        run: ({ transaction }) => transaction((tx) => expectTypeOf(tx).toEqualTypeOf<SqliteTransaction>()),
      })
      const database = undefined as unknown as BetterSqliteHandle
      createBelfry({ store: sqlite({ database }) }).job('a', {
        run: ({ transaction }) => transaction((tx) => expectTypeOf(tx).toEqualTypeOf<BetterSqliteHandle>()),
      })
      createBelfry({ store: postgres({ url: 'postgres://db/x' }) }).job('a', {
        run: ({ transaction }) => transaction(async (tx: PostgresTransaction<{ mine: true }>) => tx.client.mine),
      })
      expectTypeOf(createBelfry({ store: postgres({ url: 'x' }) })).toExtend<Belfry>()
      // A store that is chosen at run time.
      const chosen = process.env.URL === undefined ? sqlite({ path: 'x.db' }) : postgres({ url: process.env.URL })
      createBelfry({ store: chosen }).job('a', { run: () => null })
    })
  })
})

it('compiles', () => expect(digest.name).toBe('digest'))
