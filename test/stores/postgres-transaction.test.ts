import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import type { Logger } from '../../src/core/logger.js'
import type { HandlerContext } from '../../src/engine/definitions.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { key, Scene } from '../../src/testing/contract/scene.js'
import { gate, type Tx, transactionScene, transactOn } from './transaction-scene.js'

let at: Awaited<ReturnType<typeof transactionScene>>

beforeEach(async () => {
  at = await transactionScene()
})

afterEach(() => at.close())

describe('transact on postgres', () => {
  it('commits the work, and the run succeeds with its value at settlement', async () => {
    const { scene, transact, write } = at
    const id = await scene.enqueue()
    const run = await scene.claimOne()
    expect(await transact(run, (tx) => write(tx, 'paid'))).toEqual({ result: 'paid' })
    expect(await at.effects()).toEqual(['paid'])
    expect(await scene.stateOf(id)).toBe('running')
    expect(await scene.run(id)).not.toHaveProperty('result')
    expect(await scene.settle(run, { kind: 'failed', error: { message: 'afterwards' } })).toBe('settled')
    expect(await scene.run(id)).toMatchObject({ state: 'succeeded', result: 'paid', failures: 0 })
    expect(await scene.run(id)).not.toHaveProperty('error')
    expect(await scene.settle(run, { kind: 'failed', error: { message: 'again' } })).toBe('settled')
    expect(await scene.stateOf(id)).toBe('succeeded')
  })

  it.each(['succeeded', 'retry', 'released', 'cancelled'] as const)(
    'keeps what it committed when the attempt is settled as %s',
    async (kind) => {
      const { scene, transact, write } = at
      for (const over of [{}, { key: key('k') }, { dedupe: 'd' }]) {
        const id = await scene.enqueue(over)
        const run = await scene.claimOne()
        await transact(run, (tx) => write(tx, id))
        await scene.store.runs.cancel(id)
        const error = { message: 'no' }
        const outcome =
          kind === 'retry' ? { kind, error, delayMs: 1 } : kind === 'succeeded' ? { kind, result: 2 } : { kind }
        expect(await scene.settle(run, outcome)).toBe('settled')
        expect(await scene.run(id)).toMatchObject({ state: 'succeeded', result: id })
      }
    },
  )

  it('returns any JSON unchanged', async () => {
    const { scene, transact } = at
    const value = { quote: `'"\\'); rollback; --`, nul: '\u0000', emoji: '🛎️', deep: [[null, 1.5, true]], $1: '$1 ?' }
    const id = await scene.enqueue()
    const run = await scene.claimOne()
    expect(await transact(run, () => value)).toEqual({ result: value })
    await scene.settle(run)
    expect((await scene.run(id)).result).toEqual(value)
  })

  it('returns null for a callback without a value', async () => {
    await at.scene.enqueue()
    expect(await at.transact(await at.scene.claimOne(), () => undefined)).toEqual({ result: null })
  })

  it('rolls back for a stale token, before the work begins', async () => {
    const { scene, transact } = at
    await scene.enqueue()
    const run = await scene.claimOne()
    let begun = false
    const answer = await transact({ id: run.id, token: run.token - 1 }, () => {
      begun = true
    })
    expect([answer, begun]).toEqual(['stale', false])
    expect(await transact({ id: 'nonsense', token: 1 }, () => 1)).toBe('stale')
  })

  it.each([undefined, key('k')])(
    'rolls back for an attempt that is taken over during the work (key %o)',
    async (held) => {
      const { scene, transact, write } = at
      await scene.join('mortal', 300)
      await scene.enqueue(held === undefined ? {} : { key: held })
      const lost = await scene.claimOne('mortal')
      const late = await transact(lost, async (tx) => {
        await write(tx, 'late')
        await scene.elapse(400)
        await scene.store.runs.rescue(10)
      })
      expect(late).toBe('stale')
      const run = await scene.claimOne()
      expect(await transact(run, (tx) => write(tx, 'in time'))).toEqual({ result: 'in time' })
      expect(await at.effects()).toEqual(['in time'])
    },
  )

  it('rolls back for an attempt whose key was reset', async () => {
    const { scene, transact, write } = at
    await scene.enqueue({ key: key('k') })
    const run = await scene.claimOne()
    const answer = await transact(run, async (tx) => {
      await write(tx, 'late')
      await scene.store.leases.reset('k')
    })
    expect(answer).toBe('stale')
    expect(await at.effects()).toEqual([])
  })

  it('lets only one of two concurrent attempts commit', async () => {
    const { scene, transact, write } = at
    await scene.join('mortal', 300)
    await scene.enqueue({ key: key('k') })
    const first = await scene.claimOne('mortal')
    const [begun, go] = [gate(), gate()]
    const earlier = transact(first, async (tx) => {
      await write(tx, 'first')
      begun.open()
      await go.opened
    })
    await begun.opened
    await scene.elapse(400)
    await scene.store.runs.rescue(10)
    const second = await scene.claimOne()
    const later = transact(second, async (tx) => {
      await write(tx, 'second')
      go.open()
      return 'second'
    })
    expect(await Promise.all([earlier, later])).toEqual(['stale', { result: 'second' }])
    expect(await at.effects()).toEqual(['second'])
  })

  it('is decided by the first to lock the run: the commit or the takeover', async () => {
    const { scene, transact, write } = at
    for (let round = 0; round < 20; round += 1) {
      await scene.join(`mortal ${round}`, 100)
      const id = await scene.enqueue({ key: key('k') })
      const run = await scene.claimOne(`mortal ${round}`)
      let rescue: Promise<unknown> = Promise.resolve()
      const answer = await transact(run, async (tx) => {
        await write(tx, id)
        await scene.elapse(200)
        rescue = scene.store.runs.rescue(10)
      })
      await rescue
      const committed = answer !== 'stale'
      expect((await at.effects()).includes(id)).toBe(committed)
      if (committed) await scene.settle(run)
      expect(await scene.stateOf(id)).toBe(committed ? 'succeeded' : 'ready')
      if (!committed) await scene.settle(await scene.claimOne())
    }
  })

  it('rolls back when the work throws, and the attempt may continue', async () => {
    const { scene, transact, write } = at
    await scene.enqueue()
    const run = await scene.claimOne()
    const broken = transact(run, async (tx) => {
      await write(tx, 'half')
      throw new Error('no')
    })
    await expect(broken).rejects.toThrow('no')
    const instantly = transact(run, () => {
      throw new Error('at once')
    })
    await expect(instantly).rejects.toThrow('at once')
    await expect(transact(run, () => 10n)).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' })
    expect(await at.effects()).toEqual([])
    expect(await transact(run, (tx) => write(tx, 'whole'))).toEqual({ result: 'whole' })
  })

  it('keeps the key until the handler has returned', async () => {
    const { scene, transact, write } = at
    await scene.enqueue({ key: key('k') })
    const next = await scene.enqueue({ key: key('k') })
    const [run] = await scene.claim()
    if (run === undefined) throw new Error('nothing was claimed')
    await transact(run, (tx) => write(tx, 'one'))
    expect(await scene.stateOf(next)).toBe('waiting key')
    await scene.settle(run)
    expect(await scene.stateOf(next)).toBe('ready')
  })

  it('counts when the instance dies after the commit: the run has succeeded, and its key is free', async () => {
    const { scene, transact, write } = at
    await scene.join('mortal', 300)
    const id = await scene.enqueue({ key: key('k') })
    const next = await scene.enqueue({ key: key('k') })
    const [run] = await scene.claim('mortal')
    if (run === undefined) throw new Error('nothing was claimed')
    await transact(run, (tx) => write(tx, 'one'))
    await scene.elapse(400)
    await scene.store.runs.rescue(10)
    expect(await scene.run(id)).toMatchObject({ state: 'succeeded', result: 'one' })
    expect(await scene.stateOf(next)).toBe('ready')
    expect(await scene.settle(run)).toBe('settled')
  })

  it('returns the first value when it is repeated, and does the work once', async () => {
    const { scene, transact, write } = at
    await scene.enqueue()
    const run = await scene.claimOne()
    await transact(run, (tx) => write(tx, 'first'))
    expect(await transact(run, (tx) => write(tx, 'second'))).toEqual({ result: 'first' })
    expect(await at.effects()).toEqual(['first'])
  })

  it('settles a run whose history is not kept', async () => {
    const { scene, transact, write } = at
    for (const over of [{}, { key: key('k') }]) {
      const id = await scene.enqueue({ keep: 'none', ...over })
      const run = await scene.claimOne()
      await transact(run, (tx) => write(tx, id))
      expect(await scene.settle(run, { kind: 'failed', error: { message: 'no' } })).toBe('settled')
      expect(await scene.store.runs.get(id)).toBeUndefined()
    }
    expect(await scene.store.leases.inspect('k')).toEqual([])
  })
})

it('is on disk when it is acknowledged, whatever settings its callback changes', async () => {
  const { direct, table } = at
  const schema = `durable_${process.pid}`
  const store = postgres({ url: direct, schema, migrate: true, listen: false })
  const scene = new Scene({ store, elapse: async () => {} })
  // A deferred trigger runs with the commit.
  await table.pool.query(`
    create function ${table.name}_note() returns trigger language plpgsql as $$
    begin insert into ${table.name} (what) values (current_setting('synchronous_commit')); return null; end $$;
    create constraint trigger note after update on ${table.name} deferrable initially deferred
      for each row execute function ${table.name}_note();
    insert into ${table.name} (what) values ('seed')`)
  await store.open()
  await scene.join('one', 60_000)
  await scene.enqueue()
  await transactOn(store, await scene.claimOne(), async (tx) => {
    await tx.query('set local synchronous_commit = off')
    await tx.query(`update ${table.name} set what = 'changed'`)
  })
  expect(await at.effects()).toEqual(['changed', 'on'])
  await store.close()
  await table.pool.query(`drop schema ${schema} cascade; drop function ${table.name}_note() cascade`)
})

describe('transaction() in a handler on postgres', () => {
  const warnings: string[] = []
  const log: Logger = { debug() {}, info() {}, error() {}, warn: (_, message) => void warnings.push(message) }

  const receiptJob = (belfry: ReturnType<typeof createBelfry>) => belfry.job('receipt', { run: () => 'sent' })

  /** Runs a handler until its first attempt has ended. */
  async function outcomeOf(
    handler: (context: HandlerContext<unknown>, receipt: ReturnType<typeof receiptJob>) => unknown,
  ) {
    warnings.length = 0
    const belfry = createBelfry({ store: postgres({ url: at.direct, schema: at.schema }), logger: log })
    const receipt = receiptJob(belfry)
    const job = belfry.job('pay', { run: (context) => handler(context, receipt), retry: { attempts: 1 } })
    await belfry.start()
    const { run } = await job.enqueue(null)
    await expect.poll(async () => (await at.scene.run(run)).finishedAt, { timeout: 10_000 }).toBeDefined()
    await belfry.stop()
    return at.scene.run(run)
  }

  it('commits with the run, and its value is the run’s result', async () => {
    const run = await outcomeOf(async ({ transaction }) => {
      const value = await transaction((tx: Tx) => at.write(tx, 'paid'))
      return `not ${value}`
    })
    expect(run).toMatchObject({ state: 'succeeded', result: 'paid' })
    expect(await at.effects()).toEqual(['paid'])
  })

  it('can be called once per attempt', async () => {
    const errors: unknown[] = []
    await outcomeOf(async ({ transaction }) => {
      await transaction((tx: Tx) => at.write(tx, 'one'))
      await transaction((tx: Tx) => at.write(tx, 'two')).catch((error) => errors.push(error))
    })
    expect(errors).toMatchObject([{ code: 'OPTION_INVALID' }])
    expect(await at.effects()).toEqual(['one'])
  })

  it('counts when the handler throws afterwards, which is logged', async () => {
    const run = await outcomeOf(async ({ transaction }) => {
      await transaction((tx: Tx) => at.write(tx, 'paid'))
      throw new Error('afterwards')
    })
    expect(run).toMatchObject({ state: 'succeeded', result: 'paid' })
    expect(warnings).toEqual([expect.stringContaining('failed after its transaction had committed')])
  })

  it('is waited for although the handler does not', async () => {
    const run = await outcomeOf(({ transaction }) => {
      void transaction((tx: Tx) => at.write(tx, 'paid'))
    })
    expect(run).toMatchObject({ state: 'succeeded', result: 'paid' })
    expect(await at.effects()).toEqual(['paid'])
  })

  it('lets the run fail when its work throws', async () => {
    const run = await outcomeOf(({ transaction }) =>
      transaction(async (tx: Tx) => {
        await at.write(tx, 'half')
        throw new Error('no money')
      }),
    )
    expect(run).toMatchObject({ state: 'failed', error: { message: 'no money' } })
    expect(await at.effects()).toEqual([])
  })

  it('can enqueue a follow-up run in the same commit', async () => {
    const run = await outcomeOf(({ transaction }, receipt) =>
      transaction(async (tx: Tx) => {
        await at.write(tx, 'paid')
        return (await receipt.enqueue(null, { tx })).run
      }),
    )
    expect(await at.scene.run(String(run.result))).toMatchObject({ target: { job: 'receipt' } })
  })
})
