import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import type { Run } from '../../src/core/runs/run.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { key } from '../../src/testing/contract/scene.js'
import { LIBRARIES, type Library } from './libraries.js'
import { type Tx, transactionScene } from './transaction-scene.js'

const run = { target: { job: 'work' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all' } as const

describe.each(LIBRARIES)('%s', (name, open) => {
  let at: Awaited<ReturnType<typeof transactionScene>>
  let library: Library

  beforeAll(async () => {
    at = await transactionScene()
    library = await open(at.direct, at.table.name)
  }, 60_000)

  afterAll(async () => {
    await library.close()
    await at.close()
  })

  const listed = async (): Promise<readonly Run[]> => (await at.scene.store.runs.list({ limit: 10 })).items

  it('enqueues with the commit of its transaction, with all options and the payload', async () => {
    const payload = { quote: `'"\\?$1`, emoji: '🛎️', list: [1, null, true] }
    await library.transaction(async (tx, write) => {
      await write('paid')
      const runs = [{ ...run, payload, dedupe: 'once', delayMs: 5, key: key('k'), checkKey: true }, run]
      const results = await at.scene.store.runs.enqueue(runs, tx)
      expect(results).toMatchObject([{ outcome: 'enqueued' }, { outcome: 'enqueued' }])
      expect(await at.scene.store.runs.enqueue([{ ...run, dedupe: 'once' }], tx)).toEqual([
        { outcome: 'duplicate', run: results[0]?.run },
      ])
      expect(await listed()).toEqual([])
    })
    expect(await listed()).toMatchObject([{ payload: null }, { payload, dedupe: 'once', key: { name: 'k' } }])
    expect(await at.effects()).toEqual(['paid'])
  })

  it('enqueues nothing when its transaction rolls back', async () => {
    const before = await listed()
    const broken = library.transaction(async (tx, write) => {
      await write('undone')
      await at.scene.store.runs.enqueue([{ ...run, dedupe: 'undone' }], tx)
      throw new Error('no')
    })
    await expect(broken).rejects.toThrow('no')
    expect(await listed()).toEqual(before)
    expect(await at.effects()).toEqual(['paid'])
    expect(await at.scene.tryEnqueue({ dedupe: 'undone' })).toMatchObject({ outcome: 'enqueued' })
  })

  it('is refused outside of a transaction, and no run is created', async () => {
    const before = await listed()
    const refused = at.scene.store.runs.enqueue([run], library.outside)
    await expect(refused).rejects.toMatchObject({ code: 'OPTION_INVALID', message: /no transaction open/ })
    expect(await listed()).toEqual(before)
  })

  it('writes in the transaction of a handler, and commits or rolls back with it', async () => {
    const belfry = createBelfry({ store: postgres({ url: at.direct, schema: at.schema }) })
    const job = belfry.job<string>('pay', {
      retry: { attempts: 1 },
      run: ({ payload, transaction }) =>
        transaction(async (tx: Tx) => {
          await library.writeInside(tx, payload)
          if (payload.startsWith('no')) throw new Error('no')
          return payload
        }),
    })
    await belfry.start()
    const ended = async (payload: string) => {
      const { run: id } = await job.enqueue(payload)
      await expect.poll(async () => (await at.scene.run(id)).finishedAt, { timeout: 10_000 }).toBeDefined()
      return at.scene.run(id)
    }
    expect(await ended(`no ${name}`)).toMatchObject({ state: 'failed' })
    expect(await ended(`by ${name}`)).toMatchObject({ state: 'succeeded', result: `by ${name}` })
    await belfry.stop()
    expect(await at.effects()).toEqual(['paid', `by ${name}`])
  })

  it('nests its own transaction in that of a handler', async () => {
    await at.scene.enqueue({ priority: 1 })
    const attempt = await at.scene.claimOne()
    const before = await at.effects()
    const answer = await at.transact(attempt, async (tx) => {
      await library.nestInside(tx, 'inner', async () => {})
      const undone = library.nestInside(tx, 'undone', () => Promise.reject(new Error('inner no')))
      await expect(undone).rejects.toThrow('inner no')
      expect(await at.effects()).toEqual(before)
      return at.write(tx, 'outer')
    })
    expect(answer).toEqual({ result: 'outer' })
    expect(await at.effects()).toEqual([...before, 'inner', 'outer'])
  })
})
