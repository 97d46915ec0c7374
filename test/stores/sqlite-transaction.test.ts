import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import type { Logger } from '../../src/core/logger.js'
import type { HandlerContext } from '../../src/engine/definitions.js'
import { driverOf, openDriver } from '../../src/stores/sqlite/connection/driver.js'
import { type SqliteHandle, sqlite } from '../../src/stores/sqlite/index.js'
import { key, Scene } from '../../src/testing/contract/scene.js'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.js'
import { temporaryFile } from './temporary-file.js'

let clock: ManualClock
let file: ReturnType<typeof temporaryFile>
let scene: Scene

beforeEach(async () => {
  clock = manualClock()
  file = temporaryFile()
  const store = sqlite({ path: file.path, clock })
  scene = new Scene({ store, elapse: clock.advance })
  await store.open()
  withFile((db) => db.exec('create table effects (what text)'))
  await scene.join()
})

afterEach(async () => {
  await scene.store.close()
  await file.remove()
})

function withFile<T>(work: (db: SqliteHandle) => T): T {
  const db = openDriver(file.path).handle as SqliteHandle
  try {
    return work(db)
  } finally {
    db.close()
  }
}

/** The effects that handlers have committed. */
function effects(): string[] {
  return withFile((db) => driverOf(db).prepare('select what from effects').all([])).map(({ what }) => String(what))
}

function write(tx: SqliteHandle, what: string): string {
  driverOf(tx).prepare('insert into effects values (?)').run([what])
  return what
}

const transact = (run: { id: string; token: number }, work: (tx: SqliteHandle) => unknown, signal?: AbortSignal) => {
  const { transact: operation } = scene.store.runs
  if (operation === undefined) throw new Error('no transactions')
  return operation({ run: run.id, token: run.token }, work as (tx: unknown) => unknown, signal)
}

describe('transact', () => {
  it('commits the work, and the run succeeds with its value at settlement', async () => {
    const id = await scene.enqueue()
    const run = await scene.claimOne()
    expect(await transact(run, (tx) => write(tx, 'paid'))).toEqual({ result: 'paid' })
    expect(effects()).toEqual(['paid'])
    expect(await scene.stateOf(id)).toBe('running')
    expect(await scene.settle(run, { kind: 'failed', error: { message: 'afterwards' } })).toBe('settled')
    expect(await scene.run(id)).toMatchObject({ state: 'succeeded', result: 'paid', failures: 0 })
  })

  it('rolls back for a stale token', async () => {
    await scene.enqueue()
    const run = await scene.claimOne()
    expect(await transact({ id: run.id, token: run.token - 1 }, (tx) => write(tx, 'late'))).toBe('stale')
    expect(effects()).toEqual([])
  })

  it('does not begin after its signal, however long the file was busy', async () => {
    await scene.enqueue()
    const run = await scene.claimOne()
    const abort = new AbortController()
    let begun = 0
    const waiting = openDriver(file.path)
    waiting.exec('begin immediate')
    const late = transact(
      run,
      () => {
        begun += 1
      },
      abort.signal,
    )
    abort.abort(new Error('the lease is lost'))
    waiting.exec('rollback')
    waiting.close()
    // The store retries a busy file after a pause, by a timer on the clock of the test.
    const rejected = expect(late).rejects.toThrow('the lease is lost')
    await clock.advance(100)
    await rejected
    expect(begun).toBe(0)
  })

  it('rolls back for an attempt whose run was taken over', async () => {
    await scene.join('mortal', 300)
    await scene.enqueue({ key: key('k') })
    const lost = await scene.claimOne('mortal')
    await scene.elapse(400)
    await scene.store.runs.rescue(10)
    expect(await transact(lost, (tx) => write(tx, 'late'))).toBe('stale')
    const run = await scene.claimOne()
    expect(await transact(run, (tx) => write(tx, 'in time'))).toEqual({ result: 'in time' })
    expect(effects()).toEqual(['in time'])
  })

  it('rolls back when the work throws, and the attempt may continue', async () => {
    await scene.enqueue()
    const run = await scene.claimOne()
    const broken = transact(run, (tx) => {
      write(tx, 'half')
      throw new Error('no')
    })
    await expect(broken).rejects.toThrow('no')
    expect(effects()).toEqual([])
    expect(await transact(run, (tx) => write(tx, 'whole'))).toEqual({ result: 'whole' })
  })

  it('refuses a callback that returns a promise, and later writes of the callback never reach the file', async () => {
    await scene.enqueue()
    const run = await scene.claimOne()
    let afterwards: unknown
    const work = async (tx: Parameters<typeof write>[0]) => {
      write(tx, 'before')
      await Promise.resolve()
      try {
        write(tx, 'after')
      } catch (error) {
        afterwards = error
      }
    }
    const refused = transact(run, (tx) => work(tx))
    await expect(refused).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await clock.settle()
    expect(effects()).toEqual([])
    expect(afterwards).toBeDefined()
  })

  it('refuses an async function before calling it', async () => {
    await scene.enqueue()
    const run = await scene.claimOne()
    let begun = false
    const refused = transact(run, async () => {
      begun = true
    })
    await expect(refused).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(begun).toBe(false)
  })

  it.each([
    ['ends it', ['commit']],
    ['ends it and begins another', ['commit', 'begin']],
    ['undoes it and begins another', ['rollback', 'begin immediate']],
  ])('refuses a callback that %s, and the run does not succeed', async (_, statements) => {
    const id = await scene.enqueue()
    const run = await scene.claimOne()
    const refused = transact(run, (tx) => {
      for (const statement of statements) tx.exec(statement)
      write(tx, 'astray')
    })
    await expect(refused).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringContaining('ended the transaction itself'),
    })
    expect(await scene.run(id)).toMatchObject({ state: 'running' })
    expect(await transact(run, (tx) => write(tx, 'whole'))).toEqual({ result: 'whole' })
    // A write outside of any transaction is stored. A write in a transaction that the callback began was rolled back.
    expect(effects()).toEqual(statements.length === 1 ? ['astray', 'whole'] : ['whole'])
  })

  it('allows savepoints in a callback', async () => {
    await scene.enqueue()
    const run = await scene.claimOne()
    await transact(run, (tx) => {
      write(tx, 'kept')
      tx.exec('savepoint mine')
      write(tx, 'undone')
      tx.exec('rollback to mine')
      tx.exec('release mine')
    })
    expect(effects()).toEqual(['kept'])
  })

  it('explains errors of the file in its own words, and passes on errors of the work unchanged', async () => {
    await scene.enqueue()
    const run = await scene.claimOne()
    const full = transact(run, (tx) => {
      tx.exec('pragma max_page_count = 1')
      write(tx, 'x'.repeat(1_000_000))
    })
    await expect(full).rejects.toMatchObject({ code: 'STORE_FULL', message: expect.stringContaining(file.path) })
    const readOnly = transact(run, (tx) => {
      tx.exec('pragma query_only = on')
      try {
        write(tx, 'no')
      } finally {
        tx.exec('pragma query_only = off; pragma max_page_count = 100000')
      }
    })
    await expect(readOnly).rejects.toMatchObject({ code: 'STORE_READ_ONLY', cause: expect.anything() })
    const wrong = transact(run, (tx) => tx.exec('insert into nowhere values (1)'))
    await expect(wrong).rejects.toThrow('nowhere')
    await expect(wrong).rejects.not.toMatchObject({ name: 'BelfryError' })
    const own = Object.assign(new Error('the bank says no'), { errcode: 13 })
    const thrown = transact(run, () => {
      throw own
    })
    await expect(thrown).rejects.toBe(own)
    expect(await transact(run, (tx) => write(tx, 'paid'))).toEqual({ result: 'paid' })
    expect(effects()).toEqual(['paid'])
  })

  it('enforces foreign keys as the driver does', async () => {
    withFile((db) => db.exec('create table parent (id integer primary key); create table child (p references parent)'))
    const held = withFile((db) => driverOf(db).prepare('pragma foreign_keys').get([])?.foreign_keys)
    await scene.enqueue()
    const run = await scene.claimOne()
    const orphan = transact(run, (tx) => driverOf(tx).prepare('insert into child values (7)').run([]))
    if (held === 1) await expect(orphan).rejects.toThrow(/FOREIGN KEY/)
    else expect(await orphan).toEqual({ result: 1 })
  })

  it('survives a callback that closes the connection, or keeps it and uses it afterwards', async () => {
    const ids = [await scene.enqueue(), await scene.enqueue(), await scene.enqueue()]
    const [first, second, third] = await scene.claim()
    if (first === undefined || second === undefined || third === undefined) throw new Error(`of ${ids}`)
    await expect(transact(first, (tx) => tx.close() as undefined)).rejects.toThrow(/not yours to close/)
    let kept: SqliteHandle | undefined
    await transact(second, (tx) => {
      kept = tx
      return write(tx, 'second')
    })
    kept?.exec('begin immediate')
    expect(await transact(third, (tx) => write(tx, 'third'))).toEqual({ result: 'third' })
    expect(effects()).toEqual(['second', 'third'])
  })

  it('keeps the key until the handler has returned', async () => {
    await scene.enqueue({ key: key('k') })
    const next = await scene.enqueue({ key: key('k') })
    const [run] = await scene.claim()
    if (run === undefined) throw new Error('nothing was claimed')
    await transact(run, (tx) => write(tx, 'one'))
    expect(await scene.stateOf(next)).toBe('waiting key')
    await scene.settle(run)
    expect(await scene.stateOf(next)).toBe('ready')
  })

  it('is kept when the instance dies after the commit: the run has succeeded, and its key is free', async () => {
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
  })

  it('answers a repeated call with the first value, and runs the work once', async () => {
    await scene.enqueue()
    const run = await scene.claimOne()
    await transact(run, (tx) => write(tx, 'first'))
    expect(await transact(run, (tx) => write(tx, 'second'))).toEqual({ result: 'first' })
    expect(effects()).toEqual(['first'])
  })

  it('settles a run without history', async () => {
    const id = await scene.enqueue({ keep: 'none', key: key('k') })
    const run = await scene.claimOne()
    await transact(run, (tx) => write(tx, 'gone'))
    expect(await scene.settle(run)).toBe('settled')
    expect(await scene.store.runs.get(id)).toBeUndefined()
    expect(await scene.store.leases.inspect('k')).toEqual([])
  })
})

describe('transaction() in a handler', () => {
  const warnings: string[] = []
  const log: Logger = { debug() {}, info() {}, error() {}, warn: (_, message) => void warnings.push(message) }
  let belfry: Belfry

  /** Runs one handler until its first attempt has ended. */
  async function outcomeOf(handler: (context: HandlerContext<unknown>) => unknown) {
    warnings.length = 0
    belfry = createBelfry({ store: sqlite({ path: file.path, clock }), clock, logger: log })
    const job = belfry.job('pay', { run: handler, retry: { attempts: 1 } })
    await belfry.start()
    const { run } = await job.enqueue(null)
    await clock.advance(2_000)
    const stopped = belfry.stop()
    await clock.advance(20_000)
    await stopped
    return scene.run(run)
  }

  it('commits with the run, and its value is the run’s result', async () => {
    const run = await outcomeOf(async ({ transaction }) => {
      const value = await transaction((tx: SqliteHandle) => write(tx, 'paid'))
      return `not ${value}`
    })
    expect(run).toMatchObject({ state: 'succeeded', result: 'paid' })
    expect(effects()).toEqual(['paid'])
  })

  it('is available once per attempt', async () => {
    const errors: unknown[] = []
    await outcomeOf(async ({ transaction }) => {
      await transaction((tx: SqliteHandle) => write(tx, 'one'))
      await transaction((tx: SqliteHandle) => write(tx, 'two')).catch((error) => errors.push(error))
    })
    expect(errors).toMatchObject([{ code: 'OPTION_INVALID' }])
    expect(effects()).toEqual(['one'])
  })

  it('is kept when the handler throws afterwards, which is logged', async () => {
    const run = await outcomeOf(async ({ transaction }) => {
      await transaction((tx: SqliteHandle) => write(tx, 'paid'))
      throw new Error('afterwards')
    })
    expect(run).toMatchObject({ state: 'succeeded', result: 'paid' })
    expect(warnings).toEqual([expect.stringContaining('failed after its transaction had committed')])
  })

  it('refuses a call without a callback, and may then be called again', async () => {
    const errors: unknown[] = []
    const run = await outcomeOf(async ({ transaction }) => {
      await transaction(undefined as never).catch((error) => errors.push(error))
      return transaction((tx: SqliteHandle) => write(tx, 'paid'))
    })
    expect(errors).toMatchObject([{ code: 'OPTION_INVALID', message: expect.stringContaining('give it a function') }])
    expect(run).toMatchObject({ state: 'succeeded', result: 'paid' })
  })

  it('is awaited when the handler does not await it', async () => {
    const run = await outcomeOf(({ transaction }) => {
      void transaction((tx: SqliteHandle) => write(tx, 'paid'))
    })
    expect(run).toMatchObject({ state: 'succeeded', result: 'paid' })
    expect(effects()).toEqual(['paid'])
  })

  it('fails the run when its work throws', async () => {
    const run = await outcomeOf(({ transaction }) =>
      transaction(() => {
        throw new Error('no money')
      }),
    )
    expect(run).toMatchObject({ state: 'failed', error: { message: 'no money' } })
  })
})

describe('enqueue inside a transaction of the caller’s', () => {
  const run = { target: { job: 'work' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all' } as const

  it('creates the run with the commit, and not after a rollback', async () => {
    const db = openDriver(file.path).handle as SqliteHandle
    for (const end of ['rollback', 'commit']) {
      db.exec('begin immediate')
      await scene.store.runs.enqueue([run], db)
      db.exec(end)
    }
    db.close()
    expect((await scene.store.runs.list({ limit: 10 })).items).toHaveLength(1)
  })

  it('refuses an argument that is not a transaction on this file', async () => {
    const refused = { code: 'OPTION_INVALID' }
    await expect(scene.store.runs.enqueue([run], {})).rejects.toMatchObject(refused)
    const idle = openDriver(file.path).handle as SqliteHandle
    await expect(scene.store.runs.enqueue([run], idle)).rejects.toMatchObject(refused)
    idle.close()
    const other = openDriver(`${file.path}-other`).handle as SqliteHandle
    other.exec('begin')
    await expect(scene.store.runs.enqueue([run], other)).rejects.toMatchObject(refused)
    other.close()
  })
})
