import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { type Intercept, messageProxy } from '../servers/message-proxy.js'
import { gate, type Tx, transactionScene, transactOn, type Work } from './transaction-scene.js'

let at: Awaited<ReturnType<typeof transactionScene>>

beforeEach(async () => {
  at = await transactionScene()
})

afterEach(() => at.close())

/** A claimed run, ready for its transaction. */
async function claimed() {
  await at.scene.enqueue()
  return at.scene.claimOne()
}

/** Opens the store on a separate pool, so that a test can check whether the pool gets its clients back. */
async function withPool<Result>(
  options: pg.PoolConfig,
  work: (
    pool: pg.Pool,
    transact: (run: { id: string; token: number }, work: Work, signal?: AbortSignal) => Promise<unknown>,
  ) => Promise<Result>,
): Promise<Result> {
  const pool = new pg.Pool({ connectionString: at.direct, ...options })
  const store = postgres({ pool, schema: at.schema, listen: false })
  try {
    return await work(pool, (run, callback, signal) => transactOn(store, run, callback, signal))
  } finally {
    await store.close()
    await pool.end()
  }
}

/** How many sessions are inside a transaction whose last statement names the table. */
async function openTransactions(): Promise<number> {
  const { rows } = await at.table.pool.query(
    `select count(*)::integer as count from pg_stat_activity
     where query like '%${at.table.name}%' and pid <> pg_backend_pid() and state <> 'idle'`,
  )
  return rows[0].count
}

describe('a commit whose reply is lost', () => {
  const isCommit = (message: string) => message.includes('commit_run')

  async function transactOver(intercept: Intercept) {
    const run = await claimed()
    const proxy = await messageProxy(at.direct)
    proxy.intercept(intercept)
    const outcome = await withPool({ connectionString: proxy.url }, (_, transact) =>
      transact(run, (tx) => at.write(tx, 'paid')).catch((error: unknown) => error),
    )
    await proxy.close()
    return { run, outcome }
  }

  it('is found to be committed', async () => {
    const { run, outcome } = await transactOver((message, { client, server }) => {
      if (!isCommit(message)) return 'pass'
      server.removeAllListeners('data')
      server.on('data', () => client.destroy())
      return 'pass'
    })
    expect(outcome).toEqual({ result: 'paid' })
    expect(await at.effects()).toEqual(['paid'])
    await at.scene.settle(run)
    expect(await at.scene.run(run.id)).toMatchObject({ state: 'succeeded', result: 'paid' })
  })

  it('is waited for while the server still works on it', async () => {
    const { outcome } = await transactOver((message, { client, server }) => {
      if (!isCommit(message)) return 'pass'
      client.removeAllListeners('end')
      client.destroy()
      void sleep(300).then(() => server.end(Buffer.from(message, 'latin1')))
      return 'swallow'
    })
    expect(outcome).toEqual({ result: 'paid' })
    expect(await at.effects()).toEqual(['paid'])
  })

  it('is found not to be committed, and nothing was written', async () => {
    const { run, outcome } = await transactOver((message, { client, server }) => {
      if (!isCommit(message)) return 'pass'
      server.destroy()
      client.destroy()
      return 'swallow'
    })
    expect(outcome).toMatchObject({ code: 'STORE_UNREACHABLE' })
    expect(await at.effects()).toEqual([])
    expect(await at.transact(run, (tx) => at.write(tx, 'paid'))).toEqual({ result: 'paid' })
  })

  it('is stale when another instance has the run by then', async () => {
    await at.scene.join('mortal', 300)
    await at.scene.enqueue()
    const run = await at.scene.claimOne('mortal')
    const outcome = await withPool({}, (_, transact) =>
      transact(run, async (tx) => {
        await at.write(tx, 'late')
        const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
        await at.scene.elapse(400)
        await at.scene.store.runs.rescue(10)
        await at.table.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid])
      }),
    )
    expect(outcome).toBe('stale')
    expect(await at.effects()).toEqual([])
  })
})

describe('a callback that misuses its transaction', () => {
  it.each(['commit', 'ROLLBACK', 'end', 'begin', '/* why */ commit', '-- no\n commit', 'start transaction', 'abort'])(
    'is refused when it sends "%s", before the statement reaches the server',
    async (statement) => {
      const run = await claimed()
      const refused = at.transact(run, async (tx) => {
        await at.write(tx, 'half')
        await tx.query(statement)
      })
      await expect(refused).rejects.toMatchObject({ code: 'OPTION_INVALID', message: /begins and ends/ })
      expect(await at.effects()).toEqual([])
    },
  )

  it.each(['select 1; rollback', 'select 1; commit', 'select 1; commit; begin', 'select 1; rollback; begin; select 1'])(
    'is detected when it hides the command: "%s"',
    async (statement) => {
      const run = await claimed()
      const found = at.transact(run, async (tx) => {
        await tx.query(statement)
      })
      await expect(found).rejects.toMatchObject({ code: 'OPTION_INVALID', message: /begins and ends/ })
      expect(await at.transact(run, (tx) => at.write(tx, 'whole'))).toEqual({ result: 'whole' })
    },
  )

  it('may use savepoints', async () => {
    const result = await at.transact(await claimed(), async (tx) => {
      await at.write(tx, 'kept')
      await tx.query('savepoint here')
      await at.write(tx, 'undone')
      await at.write(tx, 'kept').catch(() => {})
      await tx.query('rollback to here')
      await tx.query('rollback transaction to savepoint here')
      return at.write(tx, 'also kept')
    })
    expect(result).toEqual({ result: 'also kept' })
    expect(await at.effects()).toEqual(['kept', 'also kept'])
  })

  it('gets the error that it swallowed', async () => {
    const swallowed = at.transact(await claimed(), async (tx) => {
      await at.write(tx, 'twice')
      await at.write(tx, 'twice').catch(() => {})
      await at.write(tx, 'more').catch(() => {})
      return 'fine'
    })
    await expect(swallowed).rejects.toMatchObject({
      code: 'TRANSACTION_ABORTED',
      message: /duplicate key/,
      cause: { code: '23505' },
    })
    expect(await at.effects()).toEqual([])
  })

  it('gets the error of a statement that it did not wait for', async () => {
    const careless = at.transact(await claimed(), (tx) => {
      void tx.query('select 1 / 0')
      return 'fine'
    })
    await expect(careless).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', message: /division by zero/ })
    const commits = await at.transact(await claimed(), (tx) => {
      void at.write(tx, 'unawaited')
    })
    expect(commits).toEqual({ result: null })
    expect(await at.effects()).toEqual(['unawaited'])
  })

  it('cannot use the client after it has ended', async () => {
    let kept: Tx | undefined
    await at.transact(await claimed(), (tx) => {
      kept = tx
    })
    const over = { code: 'OPTION_INVALID', message: /has ended/ }
    await expect(kept?.query('select 1')).rejects.toMatchObject(over)
    await expect(kept?.client.query('select 1')).rejects.toMatchObject(over)
    await expect(kept?.pool.query('select 1')).rejects.toMatchObject(over)
    const byCallback = new Promise((_, reject) => kept?.client.query('select 1', (error: Error) => reject(error)))
    await expect(byCallback).rejects.toMatchObject(over)
  })

  it('gets the errors of its own deferred constraints', async () => {
    const { table } = at
    await table.pool.query(
      `create table ${table.name}_of (effect integer references ${table.name} deferrable initially deferred)`,
    )
    const broken = at.transact(await claimed(), async (tx) => {
      await at.write(tx, 'half')
      await tx.query(`insert into ${table.name}_of values (12345)`)
    })
    await expect(broken).rejects.toMatchObject({ code: '23503' })
    expect(await at.effects()).toEqual([])
    await table.pool.query(`drop table ${table.name}_of`)
  })

  it('gets an error that says that it took too long between two statements', async () => {
    const idle = at.transact(await claimed(), async (tx) => {
      await tx.query(`set local idle_in_transaction_session_timeout = 100 /* ${at.table.name} */`)
      await expect.poll(openTransactions).toBe(0)
      await at.write(tx, 'late')
    })
    await expect(idle).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', message: /no statement for/ })
    const silent = at.transact(await claimed(), async (tx) => {
      await tx.query(`set local idle_in_transaction_session_timeout = 100 /* ${at.table.name} */`)
      await expect.poll(openTransactions).toBe(0)
    })
    await expect(silent).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
    expect(await at.effects()).toEqual([])
  })
})

describe('the pool with a single client that a callback gets', () => {
  it('serves callers in turn, and refuses transactions that are not savepoints', async () => {
    const answer = await at.transact(await claimed(), async ({ pool }) => {
      const first = await pool.connect()
      const order: string[] = []
      const second = pool.query('select 1').then(() => order.push('second'))
      await first.query('begin')
      await at.write(first, 'one')
      await first.query('commit')
      const outer = { code: 'OPTION_INVALID', message: /begins and ends/ }
      await expect(first.query('commit')).rejects.toMatchObject(outer)
      await expect(first.query('begin isolation level serializable')).rejects.toMatchObject(outer)
      await first.query('begin')
      await at.write(first, 'forgotten')
      order.push('first')
      first.release()
      await second
      return order
    })
    expect(answer).toEqual({ result: ['first', 'second'] })
    expect(await at.effects()).toEqual(['one'])
  })

  it('allows a rollback after a commit that failed', async () => {
    const answer = await at.transact(await claimed(), async ({ pool }) => {
      const client = await pool.connect()
      await client.query('begin')
      await client.query('select 1 / 0').catch(() => {})
      await expect(client.query('commit')).rejects.toMatchObject({ code: '25P02' })
      await client.query('rollback')
      return at.write(client, 'after')
    })
    expect(answer).toEqual({ result: 'after' })
  })

  it('rejects its waiters when the connection is lost', async () => {
    const stuck = at.transact(await claimed(), async ({ pool }) => {
      const client = await pool.connect()
      await client.query(`set local idle_in_transaction_session_timeout = 100`)
      await pool.query('select 1')
    })
    await expect(stuck).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
  })
})

describe('the clients of handlers’ transactions', () => {
  it('are returned to the pool outside of a transaction, or closed', async () => {
    await withPool({ max: 2 }, async (pool, transact) => {
      const works: Work[] = [
        (tx) => at.write(tx, 'fine'),
        () => Promise.reject(new Error('no')),
        (tx) => tx.query('select 1; commit; begin'),
        (tx) => tx.query('select broken').catch(() => {}),
        (tx) => tx.client.release(),
        (tx) => tx.client.end(),
        () => 10n,
        async (tx) => {
          const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
          await at.table.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid])
          await tx.query('select 1')
        },
      ]
      for (const work of works) await transact(await claimed(), work).catch(() => {})
      await transact({ id: '999999', token: 1 }, () => 1)
      const clients = await Promise.all([pool.connect(), pool.connect()])
      for (const client of clients) {
        // Outside of a transaction each statement has its own transaction number.
        const number = async () => (await client.query('select pg_current_xact_id()::text as xid')).rows[0].xid
        expect(await number()).not.toBe(await number())
        client.release()
      }
    })
  })

  it('leave connections for the beats, however many handlers there are', async () => {
    await withPool({ max: 4 }, async (pool, transact) => {
      const go = gate()
      let [inside, most] = [0, 0]
      const runs = [await claimed(), await claimed(), await claimed(), await claimed(), await claimed()]
      const all = runs.map((run) =>
        transact(run, async () => {
          inside += 1
          most = Math.max(most, inside)
          await go.opened
          inside -= 1
        }),
      )
      await expect.poll(() => inside).toBe(2)
      expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
      go.open()
      expect(await Promise.all(all)).toHaveLength(5)
      expect(most).toBe(2)
    })
  })

  it('need a pool of at least two connections', async () => {
    await withPool({ max: 1 }, async (_, transact) => {
      await expect(transact(await claimed(), () => 1)).rejects.toMatchObject({
        code: 'OPTION_INVALID',
        message: /at least 2 connections/,
      })
    })
  })

  it('are not waited for after the signal has fired', async () => {
    await withPool({ max: 2 }, async (pool, transact) => {
      const [stop, go, begun] = [new AbortController(), gate(), gate()]
      const holder = transact(await claimed(), async () => {
        begun.open()
        await go.opened
      })
      await begun.opened
      const queued = transact(await claimed(), () => 1, stop.signal)
      stop.abort(new Error('enough'))
      await expect(queued).rejects.toThrow('enough')
      go.open()
      expect(await holder).toEqual({ result: null })
      // All connections are in use, so the call waits for one until its signal fires.
      const others = await Promise.all([pool.connect(), pool.connect()])
      const again = new AbortController()
      const starved = transact(await claimed(), () => 1, again.signal)
      again.abort(new Error('enough'))
      await expect(starved).rejects.toThrow('enough')
      for (const other of others) other.release()
      expect(await transact(await claimed(), () => 'at last')).toEqual({ result: 'at last' })
    })
  })
})

describe('a callback that never ends', () => {
  it.each([
    ['waits for nothing', () => new Promise<never>(() => {})],
    ['waits for a statement', (tx: Tx) => tx.query(`select pg_sleep(600) /* ${at.table.name} */`)],
  ])('is ended by the signal, and holds nothing any longer: one that %s', async (_, wait) => {
    const [stop, begun] = [new AbortController(), gate()]
    const endless = at.transact(
      await claimed(),
      async (tx) => {
        await at.write(tx, 'never')
        begun.open()
        await wait(tx)
      },
      stop.signal,
    )
    await begun.opened
    stop.abort(new Error('enough'))
    await expect(endless).rejects.toThrow('enough')
    await expect.poll(openTransactions, { timeout: 5_000 }).toBe(0)
    expect(await at.effects()).toEqual([])
    await at.table.pool.query(`insert into ${at.table.name} (what) values ('never')`)
  })

  it('is fenced with its attempt', async () => {
    const belfry = createBelfry({ store: postgres({ url: at.direct, schema: at.schema }), logger: silent })
    const begun = gate()
    const job = belfry.job('stuck', {
      retry: { attempts: 1 },
      run: ({ transaction }) =>
        transaction(async (tx: Tx) => {
          await at.write(tx, 'never')
          begun.open()
          await new Promise(() => {})
        }),
    })
    await belfry.start()
    const { run } = await job.enqueue(null)
    await begun.opened
    expect(await openTransactions()).toBe(1)
    await belfry.stop({ grace: 0 })
    await expect.poll(openTransactions, { timeout: 5_000 }).toBe(0)
    expect(await at.scene.stateOf(run)).toBe('ready')
    expect(await at.effects()).toEqual([])
  })
})

const silent = { debug() {}, info() {}, warn() {}, error() {} }
