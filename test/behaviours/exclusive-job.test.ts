/** Behaviours of exclusive scheduled jobs on lock rows, without synchronised clocks and without tuning the expiry. */
import { expect } from 'vitest'
import type { Lock } from '../../src/api/locks/lock.js'
import type { Belfry } from '../../src/belfry.js'
import type { AcquireResult } from '../../src/core/lease.js'
import { isFinished, type Run } from '../../src/core/run.js'
import type { Store } from '../../src/core/store.js'
import type { HandlerContext } from '../../src/engine/definitions.js'
import { behaviours, type InstanceOptions, type World } from './world.js'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const LEASE_MS = 1_000

behaviours('Exclusive jobs on lock rows', (behaviour) => {
  behaviour(
    'X1',
    'One atomic statement acquires a lock that is absent, expired or already ours; its result tells win or lose.',
    async (world) => {
      const absent = await acquire(world.store, 'report', 'ann', 300)
      expect(absent).toMatchObject({ acquired: true, lease: { name: 'report', holder: 'ann' } })
      const rival = await acquire(world.store, 'report', 'bob')
      expect(rival).toMatchObject({ acquired: false, until: leaseOf(absent).expiresAt })
      const ours = await acquire(world.store, 'report', 'ann', 400)
      expect(leaseOf(ours).token).toBe(leaseOf(absent).token)
      expect(leaseOf(ours).expiresAt).toBeGreaterThan(leaseOf(absent).expiresAt)
      await world.until(async () => (await world.now()) > leaseOf(ours).expiresAt, 'its expiry')
      const expired = await acquire(world.store, 'report', 'bob')
      expect(leaseOf(expired).token).toBeGreaterThan(leaseOf(ours).token)
      expect(await acquire(world.store, 'report', 'ann')).toMatchObject({ acquired: false })
    },
  )

  behaviour(
    'X1',
    'One atomic statement acquires a lock that is absent or expired; its result tells win or lose. (twenty at once)',
    async (world) => {
      const handles = await openHandles(world, 4)
      let last = 0
      for (const situation of ['absent', 'expired', 'expired again']) {
        const holders = Array.from({ length: 20 }, (_, number) => `${situation} ${number}`)
        const results = await Promise.all(
          holders.map((holder, number) => acquire(handles[number % 4] ?? world.store, 'report', holder, 200)),
        )
        const [won, ...others] = results.filter(({ acquired }) => acquired)
        expect(others).toEqual([])
        const { token, holder, expiresAt } = leaseOf(won)
        expect(token).toBeGreaterThan(last)
        expect((await world.store.leases.inspect('report')).map((lease) => lease.holder)).toEqual([holder])
        last = token
        await world.until(async () => (await world.now()) > expiresAt, 'its expiry')
      }
    },
  )

  behaviour('X2', 'Losers back off at once; nobody blocks.', async (world) => {
    const holder = await start(world)
    const calls: string[] = []
    const loser = await start(world, { wrap: (store) => countingLeases(store, calls) })
    await holder.lock('report', { ttl: '10s' })
    const before = await world.now()
    const lost = await Promise.all(Array.from({ length: 20 }, () => loser.lock('report', { ttl: '10s' })))
    expect(lost).toEqual(Array(20).fill(undefined))
    expect((await world.now()) - before).toBeLessThan(SECOND_MS)
    expect(calls).toEqual(Array(20).fill('acquire'))
    await expect(loser.withLock('report', () => 'done')).rejects.toThrow(expect.objectContaining({ code: 'LOCK_BUSY' }))
  })

  behaviour('X2', 'Losers back off at once; nobody blocks. (runs)', async (world) => {
    const holder = await startWorker(world, { takesMs: 1_500, exclusive: { whenBusy: 'wait' } })
    await holder.job.enqueue('report')
    await world.until(() => holder.starts.length === 1, 'the holder')
    const belfry = await world.instance({ concurrency: 1 })
    belfry.job('work', { exclusive: { whenBusy: 'wait' }, run: () => undefined })
    const other = belfry.job('other', { run: () => undefined })
    await belfry.start()
    // A losing run that waited in a slot would occupy the only one.
    for (let number = 0; number < 5; number += 1) await holder.job.enqueue('report')
    const { run } = await other.enqueue(undefined)
    await world.until(async () => (await world.store.runs.get(run))?.state === 'succeeded', 'the other job')
    const states = (await world.runs({ job: 'work' })).map(({ state }) => state)
    expect(states).toEqual(['running', ...Array(5).fill('waiting')])
  })

  behaviour(
    'X3',
    'Re-acquiring by the same holder succeeds and extends, with the same token. The holder is an acquisition, not an instance: `lock(name, { holder: lock })` re-enters, with as many releases as acquisitions; a plain second `lock(name)` in the same process is a rival (X14).',
    async (world) => {
      const belfry = await start(world)
      const outer = some(await belfry.lock('report', { ttl: '1s' }))
      const [before] = await belfry.locks.inspect('report')
      const inner = some(await belfry.lock('report', { ttl: '5s', holder: outer }))
      const [after, ...others] = await belfry.locks.inspect('report')
      expect(others).toEqual([])
      expect(inner.token).toBe(outer.token)
      expect(after?.holder).toBe(before?.holder)
      expect(after?.expiresAt).toBeGreaterThan((before?.expiresAt ?? 0) + 3_000)
      expect(await belfry.lock('report')).toBeUndefined()
    },
  )

  behaviour(
    'X3',
    'Re-acquiring by the same holder succeeds and extends, with as many releases as acquisitions. (releases)',
    async (world) => {
      const belfry = await start(world)
      const rival = await start(world)
      const outer = some(await belfry.lock('report'))
      const middle = some(await belfry.lock('report', { holder: outer }))
      const inner = some(await belfry.lock('report', { holder: middle }))
      expect(await inner.release()).toBe(true)
      expect(await inner.release()).toBe(false)
      expect(await inner.release()).toBe(false)
      expect(await rival.lock('report')).toBeUndefined()
      expect(await outer.release()).toBe(true)
      expect(await rival.lock('report')).toBeUndefined()
      expect(middle.signal.aborted).toBe(false)
      expect(await middle.release()).toBe(true)
      const next = some(await rival.lock('report'))
      expect(next.token).toBeGreaterThan(outer.token)
      await expect(belfry.lock('report', { holder: outer })).rejects.toThrow(/released/)
      await expect(rival.lock('other', { holder: next })).rejects.toThrow(/holds "report"/)
    },
  )

  behaviour(
    'X3',
    'Re-acquiring by the same holder succeeds and extends, with as many releases as acquisitions. (entered while the first is given back)',
    async (world) => {
      const belfry = await start(world)
      const rival = await start(world)
      const outer = some(await belfry.lock('report'))
      const entering = belfry.lock('report', { holder: outer })
      await outer.release()
      const inner = some(await entering)
      expect(await rival.lock('report')).toBeUndefined()
      expect(await inner.release()).toBe(true)
      expect(await rival.lock('report')).toBeDefined()
    },
  )

  behaviour(
    'X3',
    'Re-acquiring by the same holder succeeds and extends, with the same token. (it never shortens)',
    async (world) => {
      const belfry = await start(world)
      const outer = some(await belfry.lock('report', { ttl: '1h', renew: false }))
      const [before] = await belfry.locks.inspect('report')
      for (const ttl of [{}, { ttl: '300ms' }]) {
        const inner = some(await belfry.lock('report', { holder: outer, ...ttl }))
        expect((await belfry.locks.inspect('report'))[0]?.expiresAt).toBeGreaterThanOrEqual(before?.expiresAt ?? 0)
        await inner.release()
      }
      await world.elapse(500)
      expect(outer.signal.aborted).toBe(false)
    },
  )

  behaviour(
    'X3',
    'Re-acquiring by the same holder succeeds and extends, with the same token. (a lock that was lost is not entered again under the old name)',
    async (world) => {
      const belfry = await start(world)
      const rival = await start(world)
      const outer = some(await belfry.lock('report', { ttl: '1s' }))
      await belfry.locks.reset('report')
      const taken = some(await rival.lock('report'))
      expect(await belfry.lock('report', { holder: outer })).toBeUndefined()
      await taken.release()
      const again = await belfry.lock('report', { holder: outer })
      // A caller that still works under the first token must not count as the holder of the second.
      expect(again).toBeUndefined()
      expect(outer.signal.aborted).toBe(true)
      expect(await rival.lock('report')).toBeDefined()
    },
  )

  behaviour(
    'X4',
    'Only the holder can extend; it may extend a lock that has expired if nobody took it.',
    async (world) => {
      const { leases } = world.store
      const { token, expiresAt } = leaseOf(await acquire(world.store, 'report', 'ann', 300))
      const renew = async (holder: string, withToken: number) =>
        (await leases.renew([{ name: 'report', holder, token: withToken, ttlMs: 600 }]))[0]
      expect(await renew('bob', token)).toBeUndefined()
      expect(await renew('ann', token - 1)).toBeUndefined()
      expect(await renew('ann', token + 1)).toBeUndefined()
      expect((await leases.inspect('report'))[0]?.expiresAt).toBe(expiresAt)
      await world.until(async () => (await world.now()) > expiresAt, 'its expiry')
      expect(await leases.inspect('report')).toEqual([])
      const extended = await renew('ann', token)
      expect(extended).toMatchObject({ holder: 'ann', token })
      expect(await acquire(world.store, 'report', 'bob')).toMatchObject({ acquired: false })
      await world.until(async () => (await world.now()) > (extended?.expiresAt ?? 0), 'its expiry')
      const successor = leaseOf(await acquire(world.store, 'report', 'bob', 5_000))
      expect(await renew('ann', token)).toBeUndefined()
      expect(await renew('ann', successor.token)).toBeUndefined()
      expect(await leases.inspect('report')).toEqual([successor])
    },
  )

  behaviour(
    'X4',
    'Only the holder can extend; it may extend a lock that has expired if nobody took it. (after a stall, and it renews itself again)',
    async (world) => {
      const belfry = await start(world)
      const rival = await start(world)
      const lock = some(await belfry.lock('report', { ttl: '1s' }))
      const { token } = lock
      world.hold(belfry)
      await world.elapse(1_500)
      expect(await world.store.leases.inspect('report')).toEqual([])
      world.resume(belfry)
      await world.until(async () => (await world.store.leases.inspect('report')).length > 0, 'the renewal')
      expect(await world.settled(lock.extend('1s'))).toBe(true)
      expect(lock.token).toBe(token)
      await world.elapse(2_000)
      expect(lock.signal.aborted).toBe(false)
      expect(await rival.lock('report')).toBeUndefined()
    },
  )

  behaviour('X5', 'A failed extend aborts the job fast (its AbortSignal fires, with a reason).', async (world) => {
    const belfry = await start(world)
    const rival = await start(world)
    const lock = some(await belfry.lock('report', { ttl: '300ms', renew: false }))
    await world.elapse(400)
    const taken = some(await rival.lock('report', { ttl: '10s' }))
    expect(await lock.extend('10s')).toBe(false)
    expect(lock.signal.aborted).toBe(true)
    expect(lock.signal.reason).toMatchObject({ code: 'LEASE_LOST', message: expect.stringContaining('"report"') })
    expect(taken.signal.aborted).toBe(false)
    expect(await taken.extend('10s')).toBe(true)
  })

  behaviour(
    'X5',
    'A failed extend aborts the job fast (its AbortSignal fires, with a reason). (a renewal that fails by itself)',
    async (world) => {
      const belfry = await start(world)
      const lock = some(await belfry.lock('report', { ttl: '1s' }))
      await belfry.locks.reset('report')
      const resetAt = await world.now()
      await world.until(() => lock.signal.aborted, 'the signal')
      expect((await world.now()) - resetAt).toBeLessThan(600)
      expect(lock.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
      expect(await lock.release()).toBe(false)
    },
  )

  for (const hints of [true, false]) {
    behaviour(
      'X5',
      `A failed extend aborts the job fast (its AbortSignal fires, with a reason). (a run whose key was taken from it, ${hints ? 'with' : 'without'} hints)`,
      async (world) => {
        const { belfry, job, starts } = await startWorker(world, {
          hangs: (start) => start.attempt === 1,
          wrap: (store) => (hints ? store : { ...store, subscribe: () => () => {} }),
        })
        await job.enqueue('report')
        await world.until(() => starts.length === 1, 'the first attempt')
        expect(await belfry.locks.reset(keyOf('report'))).toBe(1)
        const resetAt = await world.now()
        await world.until(() => starts[0]?.signal.aborted === true, 'its signal')
        expect((await world.now()) - resetAt).toBeLessThan(LEASE_MS)
        expect(starts[0]?.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
        await world.until(async () => (await ended(world)).length === 1, 'the second attempt')
        expect(await ended(world)).toMatchObject([{ state: 'succeeded', attempt: 2, failures: 0 }])
      },
    )
  }

  behaviour('X6', 'Only the holder can release.', async (world) => {
    const { leases } = world.store
    const first = leaseOf(await acquire(world.store, 'report', 'ann', 300))
    expect(await leases.release({ name: 'report', holder: 'bob' })).toBe(false)
    expect(await leases.release({ name: 'other', holder: 'ann' })).toBe(false)
    expect(await leases.inspect('report')).toEqual([first])
    await world.until(async () => (await world.now()) > first.expiresAt, 'its expiry')
    const second = leaseOf(await acquire(world.store, 'report', 'bob', 10_000))
    expect(await leases.release({ name: 'report', holder: 'ann' })).toBe(false)
    expect(await leases.inspect('report')).toEqual([second])
    expect(await leases.release({ name: 'report', holder: 'bob' })).toBe(true)
    expect(await leases.inspect('report')).toEqual([])
    expect(await leases.release({ name: 'report', holder: 'bob' })).toBe(false)
  })

  behaviour('X6', 'Only the holder can release. (the key of a run)', async (world) => {
    const { job, starts } = await startWorker(world, { takesMs: 800 })
    await job.enqueue('report')
    await world.until(() => starts.length === 1, 'the run')
    const [lease] = await world.store.leases.inspect(keyOf('report'))
    expect(lease).toMatchObject({ token: starts[0]?.token })
    expect(await world.store.leases.release({ name: keyOf('report'), holder: 'bob' })).toBe(false)
    expect(await acquire(world.store, keyOf('report'), 'bob')).toMatchObject({ acquired: false })
    await world.until(async () => (await ended(world)).length === 1, 'its end')
    expect(await world.store.leases.inspect(keyOf('report'))).toEqual([])
  })

  behaviour(
    'X7',
    'Releasing early must not let a late instance run the same tick again (locks have a minimum hold, and ticks have their own dedupe). The minimum hold binds a holder that has finished; work handed over unfinished frees its key at once.',
    async (world) => {
      const belfry = await start(world)
      const late = await start(world)
      const lock = some(await belfry.lock('report', { ttl: '300ms', minHold: '1s' }))
      const acquiredAt = await world.now()
      expect(await lock.release()).toBe(true)
      expect(await late.lock('report')).toBeUndefined()
      await expect(belfry.lock('report', { holder: lock })).rejects.toThrow(/released/)
      const next = some(await world.settled(late.lock('report', { wait: '3s' })))
      expect((await world.now()) - acquiredAt).toBeGreaterThanOrEqual(SECOND_MS - 5)
      expect(next.token).toBeGreaterThan(lock.token)
    },
  )

  behaviour(
    'X7',
    'Locks have a minimum hold. (one that was entered twice keeps the longer, whoever leaves last)',
    async (world) => {
      const belfry = await start(world)
      const late = await start(world)
      const outer = some(await belfry.lock('report', { minHold: '1s' }))
      const inner = some(await belfry.lock('report', { holder: outer }))
      await outer.release()
      await inner.release()
      expect(await late.lock('report')).toBeUndefined()
    },
  )

  behaviour(
    'X7',
    'Releasing early must not let a late instance run the same tick again. (ticks have their own dedupe)',
    async (world) => {
      const punctual = await startWorker(world)
      const late = await startWorker(world, { starts: punctual.starts })
      await punctual.belfry.schedules.put('tick', {
        at: new Date((await world.now()) + 500),
        job: 'work',
        payload: 'report',
      })
      world.hold(late.belfry)
      await world.until(async () => (await ended(world)).length === 1, 'the tick')
      world.resume(late.belfry)
      await world.elapse(1_500)
      expect(punctual.starts).toHaveLength(1)
      expect(await world.runs({ job: 'work' })).toMatchObject([{ state: 'succeeded', attempt: 1 }])
    },
  )

  behaviour(
    'X7',
    'The minimum hold binds a holder that has finished; work handed over unfinished frees its key at once.',
    async (world) => {
      const stopping = await startWorker(world, { hangs: () => true })
      await stopping.belfry.lock('report', { minHold: '1h' })
      await stopping.job.enqueue('unfinished')
      await world.until(() => stopping.starts.length === 1, 'the work')
      const next = await startWorker(world)
      await world.settled(stopping.belfry.stop({ grace: 0 }))
      const stoppedAt = await world.now()
      expect(await next.belfry.lock('report')).toBeDefined()
      await world.until(async () => (await ended(world)).length === 1, 'the takeover')
      expect((await world.now()) - stoppedAt).toBeLessThan(SECOND_MS)
      expect(next.starts[0]?.token).toBeGreaterThan(stopping.starts[0]?.token ?? Number.POSITIVE_INFINITY)
    },
  )

  behaviour('X8', "A crashed holder's job runs again after expiry, on another instance.", async (world) => {
    const first = await startWorker(world, { hangs: () => true })
    const at = new Date((await world.now()) + 300)
    await first.belfry.schedules.put('tick', { at, job: 'work', payload: 'report' })
    await world.until(() => first.starts.length === 1, 'the first attempt')
    const second = await startWorker(world)
    const crashedAt = await world.now()
    world.crash(first.belfry)
    await world.until(async () => (await ended(world)).length === 1, 'the takeover')
    const [run] = await ended(world)
    expect(run).toMatchObject({ state: 'succeeded', attempt: 2, takeovers: 1, failures: 0 })
    expect(run?.instance).toBe(second.belfry.instance)
    expect((run?.startedAt ?? Number.POSITIVE_INFINITY) - crashedAt).toBeLessThanOrEqual(1.5 * LEASE_MS + 500)
    expect(second.starts[0]?.token).toBeGreaterThan(first.starts[0]?.token ?? Number.POSITIVE_INFINITY)
    const outcome = { kind: 'succeeded', result: 'from the grave' } as const
    const dead = { run: run?.id ?? '', token: first.starts[0]?.token ?? 0, outcome }
    expect(await world.store.runs.settle([dead])).toEqual(['stale'])
  })

  behaviour(
    'X8',
    "A crashed holder's job runs again after expiry, on another instance. (not before: its lease still stands)",
    async (world) => {
      const first = await startWorker(world, { hangs: () => true, lease: '2s' })
      await first.job.enqueue('report')
      await world.until(() => first.starts.length === 1, 'the first attempt')
      const second = await startWorker(world)
      const [held] = await world.store.leases.inspect(keyOf('report'))
      world.crash(first.belfry)
      await world.until(async () => (await ended(world)).length === 1, 'the takeover')
      const [run] = await ended(world)
      expect(run?.startedAt).toBeGreaterThanOrEqual(held?.expiresAt ?? Number.POSITIVE_INFINITY)
      expect(run?.instance).toBe(second.belfry.instance)
    },
  )

  behaviour(
    'X9',
    'Every lock operation is its own short transaction; connection pooling (PgBouncer in transaction mode included) does not affect correctness. (each step over another connection)',
    async (world) => {
      const handles = await openHandles(world, 4)
      const via = (number: number) => handles[number % handles.length] ?? world.store
      let last = 0
      for (let round = 0; round < 8; round += 1) {
        const holder = `holder ${round}`
        const { token } = leaseOf(await acquire(via(round), 'report', holder, 1_000))
        expect(token).toBeGreaterThan(last)
        last = token
        // Rivals that try in between, over any connection, find the lock held.
        const step = async <Result>(work: Promise<Result>, rivals: number): Promise<Result> => {
          const asked = handles.map((handle, number) => acquire(handle, 'report', `rival ${rivals} ${number}`))
          const [result, ...lost] = await Promise.all([work, ...asked])
          expect(lost.map(({ acquired }) => acquired)).toEqual(handles.map(() => false))
          return result
        }
        const renewal = { name: 'report', holder, token, ttlMs: 2_000 }
        expect(await step(via(round + 1).leases.renew([renewal]), 1)).toMatchObject([{ holder, token }])
        expect(await step(via(round + 2).leases.inspect('report'), 2)).toMatchObject([{ holder, token }])
        expect(leaseOf(await step(acquire(via(round + 3), 'report', holder, 2_000), 3)).token).toBe(token)
        expect(await via(round + 2).leases.release({ name: 'report', holder })).toBe(true)
        expect(await via(round + 1).leases.release({ name: 'report', holder })).toBe(false)
        expect(await via(round).leases.renew([renewal])).toEqual([undefined])
      }
    },
  )

  behaviour(
    'X9',
    'Every lock operation is its own short transaction. (an instance that is stopped right after one holds nobody up)',
    async (world) => {
      const other = await start(world)
      const operations: [string, (belfry: Belfry, lock: Lock) => Promise<unknown>][] = [
        ['lock', (belfry) => belfry.lock('second')],
        ['wait', (belfry) => belfry.lock('busy', { wait: '20s' })],
        ['extend', (_, lock) => lock.extend('1m')],
        ['release', (_, lock) => lock.release()],
        ['reset', (belfry) => belfry.locks.reset('report')],
      ]
      const busy = some(await other.lock('busy'))
      for (const [operation, run] of operations) {
        const stopped = await start(world)
        const lock = some(await stopped.lock('report', { ttl: '1m' }))
        const answer = run(stopped, lock)
        world.hold(stopped)
        await world.elapse(100)
        // The stopped instance may hold its locks, but it must not block the name, the table or a connection.
        for (const name of ['report', 'second', 'third']) {
          await world.settled(other.locks.reset(name), 1_000)
          const taken = await world.settled(other.lock(name, { ttl: '1m' }), 1_000)
          expect(taken, `${name} after ${operation}`).toBeDefined()
          await taken?.release()
        }
        world.resume(stopped)
        if (operation === 'wait') await busy.release()
        await world.settled(answer)
        await world.settled(stopped.stop())
      }
    },
  )

  behaviour('X9', 'Connection pooling does not affect correctness. (a crowd over few connections)', async (world) => {
    const instances = [await start(world), await start(world), await start(world)]
    const tokens: number[] = []
    const most = await atOnce(world, async (inside) => {
      const turns = Array.from({ length: 30 }, (_, number) =>
        some(instances[number % 3]).withLock(
          'report',
          async ({ token }) => {
            tokens.push(token)
            await inside(10)
          },
          { wait: '30s', ttl: '2s' },
        ),
      )
      await world.settled(Promise.all(turns), 30_000)
    })
    expect(most).toBe(1)
    expect(tokens).toHaveLength(30)
    expect(tokens).toEqual([...new Set(tokens)].sort((one, another) => one - another))
    expect((await world.store.leases.list({ limit: 10 })).items).toEqual([])
  })

  behaviour(
    'X10',
    'Winners spread: over many ticks no instance takes all of them (load is balanced, and capacity is respected).',
    async (world) => {
      const workers = [
        await startWorker(world, { concurrency: 2, takesMs: 100 }),
        await startWorker(world, { concurrency: 2, takesMs: 100 }),
        await startWorker(world, { concurrency: 2, takesMs: 100 }),
      ]
      const schedules = Array.from({ length: 12 }, (_, number) => `tick/${number}`)
      const { schedules: api } = some(workers[0]).belfry
      await Promise.all(schedules.map((id) => api.put(id, { every: '1s', job: 'work', payload: id })))
      await world.until(async () => (await ended(world)).length >= 36, 'three ticks of each')
      const all = workers.reduce((total, { starts }) => total + starts.length, 0)
      for (const { starts, most } of workers) {
        expect(most()).toBeLessThanOrEqual(2)
        expect(starts.length).toBeGreaterThan(all / 10)
        expect(starts.length).toBeLessThan((all * 2) / 3)
      }
    },
  )

  behaviour(
    'X10',
    'Winners spread: over many ticks no instance takes all of them. (each tick on its own, and nobody short of slots)',
    async (world) => {
      const workers = [await startWorker(world), await startWorker(world), await startWorker(world)]
      const { schedules } = some(workers[0]).belfry
      for (let number = 0; number < 5; number += 1) {
        await schedules.put(`tick/${number}`, { every: '1s', job: 'work', payload: number })
        await world.elapse(170)
      }
      // By chance alone, one of the three gets none of twenty ticks once in a thousand runs, and none of fifty
      // practically never.
      await world.until(async () => (await ended(world)).length >= 50, 'ten ticks of each')
      const shares = workers.map(({ starts }) => starts.length)
      expect(Math.min(...shares)).toBeGreaterThan(0)
    },
  )

  behaviour(
    'X11',
    'An operator may reset a lock by hand (CLI/API/SQL) and everything recovers. (a lock)',
    async (world) => {
      const crashed = await start(world)
      const operator = await start(world, { roles: [] })
      const stuck = some(await crashed.lock('report', { ttl: '1h' }))
      world.crash(crashed)
      expect(await operator.lock('report')).toBeUndefined()
      expect(await operator.locks.reset('report')).toBe(1)
      expect(await operator.locks.reset('report')).toBe(0)
      expect(await operator.locks.reset('never held')).toBe(0)
      expect(await operator.locks.inspect('report')).toEqual([])
      const next = some(await operator.lock('report'))
      expect(next.token).toBeGreaterThan(stuck.token)
    },
  )

  behaviour(
    'X11',
    'An operator may reset a lock by hand (CLI/API/SQL) and everything recovers. (a waiter gets it)',
    async (world) => {
      const holder = await start(world)
      const waiter = await start(world)
      const lock = some(await holder.lock('report', { ttl: '10s' }))
      const waiting = waiter.lock('report', { wait: '10s', ttl: '10s' })
      await world.elapse(300)
      await waiter.locks.reset('report')
      const resetAt = await world.now()
      const next = some(await world.settled(waiting))
      expect((await world.now()) - resetAt).toBeLessThan(SECOND_MS)
      await world.until(() => lock.signal.aborted, "the holder's signal", 5_000)
      expect(await lock.release()).toBe(false)
      expect(await waiter.locks.inspect('report')).toMatchObject([{ token: next.token }])
    },
  )

  behaviour(
    'X11',
    'An operator may reset a lock by hand (CLI/API/SQL) and everything recovers. (the key of runs that wait)',
    async (world) => {
      let first: string | undefined
      const worker = await startWorker(world, {
        exclusive: { whenBusy: 'wait' },
        hangs: ({ attempt, run }) => {
          first ??= run
          return attempt === 1 && run === first
        },
      })
      await worker.job.enqueue('report')
      await worker.job.enqueue('report')
      await worker.job.enqueue('report')
      await world.until(() => worker.starts.length === 1, 'one that hangs')
      await world.elapse(300)
      expect(worker.starts).toHaveLength(1)
      expect(await worker.belfry.locks.reset(keyOf('report'))).toBe(1)
      await world.until(async () => (await ended(world)).length === 3, 'all of them')
      expect((await ended(world)).map(({ state }) => state)).toEqual(['succeeded', 'succeeded', 'succeeded'])
      expect(await worker.belfry.locks.inspect(keyOf('report'))).toEqual([])
    },
  )

  behaviour('X12', 'Lock names are 1–255 characters; anything else is a clear error.', async (world) => {
    const belfry = await start(world)
    for (const name of ['x', 'é'.repeat(255), 'invoice:42 / "ten" \'per\' cent %_\\']) {
      const lock = some(await belfry.lock(name))
      expect((await belfry.locks.inspect(name)).map((lease) => lease.name)).toEqual([name])
      expect(await lock.release()).toBe(true)
    }
    const refused = expect.objectContaining({ code: 'NAME_INVALID', message: expect.stringContaining('lock name') })
    for (const name of ['', 'x'.repeat(256), 'a\nb', 'a\u0000b', 42 as unknown as string]) {
      await expect(belfry.lock(name)).rejects.toThrow(refused)
      await expect(belfry.withLock(name, () => 'never')).rejects.toThrow(refused)
      await expect(belfry.locks.reset(name)).rejects.toThrow(refused)
      await expect(belfry.locks.inspect(name)).rejects.toThrow(refused)
    }
    expect((await belfry.locks.list()).items).toEqual([])
  })

  behaviour(
    'X13',
    "Instances' clocks need not agree: the store's clock decides. Instances skewed by ±10 minutes change nothing. (ticks and runs)",
    async (world) => {
      const fast = await startWorker(world, { skewMs: 10 * MINUTE_MS })
      const slow = await startWorker(world, { skewMs: -10 * MINUTE_MS, starts: fast.starts })
      const right = await startWorker(world, { starts: fast.starts })
      const before = await world.now()
      const { anchor } = await fast.belfry.schedules.put('tick', { every: '1s', job: 'work', payload: 'tick' })
      expect(anchor - before).toBeLessThan(SECOND_MS)
      const delayed = await slow.job.enqueue('delayed', { in: '1s' })
      const triggered = await right.belfry.schedules.trigger('tick')
      await world.until(async () => (await ended(world)).filter(isTick).length >= 3, 'three ticks')
      await world.until(async () => (await ended(world)).some(({ id }) => id === delayed.run), 'the delayed one')
      const runs = await world.runs({ job: 'work' })
      const ticks = runs.filter(isTick)
      expect(ticks.map(({ tick }) => tick)).toEqual(ticks.map((_, index) => anchor + (index + 1) * SECOND_MS))
      for (const { state, attempt, startedAt = 0, tick = 0 } of ticks.filter(isFinished)) {
        expect({ state, attempt }).toEqual({ state: 'succeeded', attempt: 1 })
        expect(startedAt).toBeGreaterThanOrEqual(tick)
        expect(startedAt - tick).toBeLessThan(SECOND_MS)
      }
      const [late] = runs.filter(({ id }) => id === delayed.run)
      expect((late?.startedAt ?? 0) - (late?.createdAt ?? 0)).toBeGreaterThanOrEqual(SECOND_MS)
      expect((late?.startedAt ?? 0) - (late?.createdAt ?? 0)).toBeLessThan(2 * SECOND_MS)
      const [pulled] = runs.filter(({ id }) => id === triggered.run)
      expect(Math.abs((pulled?.tick ?? 0) - before)).toBeLessThan(SECOND_MS)
      for (const { belfry } of [fast, slow, right]) expect(complaints(world, belfry)).toEqual([])
    },
  )

  behaviour(
    'X13',
    "Instances' clocks need not agree: the store's clock decides. Instances skewed by ±10 minutes change nothing. (locks)",
    async (world) => {
      const fast = await start(world, { skewMs: 10 * MINUTE_MS })
      const slow = await start(world, { skewMs: -10 * MINUTE_MS })
      let last = 0
      for (const [holder, rival] of [
        [fast, slow],
        [slow, fast],
      ] as const) {
        const lock = some(await holder.lock('report', { ttl: '400ms', renew: false }))
        expect(lock.token).toBeGreaterThan(last)
        expect(await rival.lock('report')).toBeUndefined()
        const since = await world.now()
        const taken = some(await world.settled(rival.lock('report', { wait: '2s', ttl: '400ms' })))
        expect((await world.now()) - since).toBeLessThan(SECOND_MS)
        expect(taken.token).toBeGreaterThan(lock.token)
        expect(lock.signal.aborted).toBe(true)
        expect(await lock.release()).toBe(false)
        expect(await taken.release()).toBe(true)
        last = taken.token
      }
      const renewed = some(await slow.lock('report', { ttl: '1s' }))
      await world.elapse(2_000)
      expect(renewed.signal.aborted).toBe(false)
      expect(await fast.lock('report')).toBeUndefined()
    },
  )

  behaviour(
    'X13',
    "Instances' clocks need not agree: the store's clock decides. Instances skewed by ±10 minutes change nothing. (takeover)",
    async (world) => {
      const fast = await startWorker(world, { skewMs: 10 * MINUTE_MS, takesMs: 2_500 })
      const slow = await startWorker(world, { skewMs: -10 * MINUTE_MS, hangs: () => true, jobs: [] })
      await fast.job.enqueue('alive')
      await world.until(async () => (await ended(world)).length === 1, 'a run longer than the lease')
      expect(await ended(world)).toMatchObject([{ attempt: 1, takeovers: 0 }])
      expect(slow.starts).toEqual([])
      await fast.job.enqueue('doomed')
      await world.until(() => fast.starts.length === 2, 'the doomed one')
      world.crash(fast.belfry)
      const heir = await startWorker(world, { skewMs: -10 * MINUTE_MS })
      await world.until(async () => (await ended(world)).length === 2, 'the takeover', 5_000)
      expect(heir.starts).toMatchObject([{ attempt: 2 }])
    },
  )

  behaviour(
    'X14',
    'One instance cannot overlap itself: each acquisition has its own token, not only a static instance id.',
    async (world) => {
      const belfry = await start(world)
      const first = some(await belfry.lock('report'))
      expect(await belfry.lock('report')).toBeUndefined()
      await first.release()
      const second = some(await belfry.lock('report'))
      expect(second.token).toBeGreaterThan(first.token)
      expect(await first.release()).toBe(false)
      expect(await belfry.locks.inspect('report')).toMatchObject([{ token: second.token }])
      const most = await atOnce(world, async (inside) => {
        const turns = Array.from({ length: 10 }, () =>
          belfry.withLock('shared', () => inside(30), { wait: '10s', ttl: '2s' }),
        )
        await world.settled(Promise.all(turns))
      })
      expect(most).toBe(1)
    },
  )

  behaviour('X14', 'One instance cannot overlap itself: each acquisition has its own token. (runs)', async (world) => {
    const worker = await startWorker(world, { exclusive: { whenBusy: 'wait' }, takesMs: 60, concurrency: 10 })
    await worker.job.enqueueMany(Array.from({ length: 8 }, () => ({ payload: 'report' })))
    await world.until(async () => (await ended(world)).length === 8, 'all of them')
    expect(worker.most()).toBe(1)
    const tokens = worker.starts.map(({ token }) => token)
    expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other))
    expect(tokens).toHaveLength(8)
  })

  behaviour(
    'X14',
    'One instance cannot overlap itself: each acquisition has its own token. (its own earlier attempt counts as another holder)',
    async (world) => {
      const worker = await startWorker(world, { takesMs: 1_500, deaf: true })
      const { run } = await worker.job.enqueue('report')
      await world.until(() => worker.starts.length === 1, 'the first attempt')
      await worker.belfry.locks.reset(keyOf('report'))
      await world.until(() => worker.starts.length === 2, 'the second attempt, beside the first')
      const [first, second] = worker.starts
      expect(second?.token).toBeGreaterThan(first?.token ?? Number.POSITIVE_INFINITY)
      const outcome = { kind: 'succeeded', result: 'too late' } as const
      expect(await world.store.runs.settle([{ run, token: first?.token ?? 0, outcome }])).toEqual(['stale'])
      await world.until(async () => (await ended(world)).length === 1, 'its end')
      expect(await ended(world)).toMatchObject([{ token: second?.token, attempt: 2 }])
    },
  )

  behaviour('X15', 'Expiry need not be hand-tuned: leases renew themselves while the work runs.', async (world) => {
    const worker = await startWorker(world, { takesMs: 3_000 })
    const rival = await startWorker(world, { starts: worker.starts })
    const lock = some(await worker.belfry.lock('report', { ttl: '1s' }))
    await worker.job.enqueue('report')
    const since = await world.now()
    while ((await world.now()) - since < 2_800) {
      expect(await rival.belfry.lock('report')).toBeUndefined()
      await world.elapse(200)
    }
    await world.until(async () => (await ended(world)).length === 1, 'the long run')
    expect(lock.signal.aborted).toBe(false)
    expect(await ended(world)).toMatchObject([{ state: 'succeeded', attempt: 1, takeovers: 0 }])
    expect(worker.starts).toHaveLength(1)
    expect(await lock.release()).toBe(true)
    expect(await rival.belfry.lock('report')).toBeDefined()
  })

  behaviour('X16', 'Works for event-triggered (enqueued) work too, not only for periodic triggers.', async (world) => {
    const first = await startWorker(world, { takesMs: 200 })
    const second = await startWorker(world, { takesMs: 200, starts: first.starts })
    const results = await Promise.all(
      Array.from({ length: 6 }, (_, number) => (number % 2 === 0 ? first : second).job.enqueue('report')),
    )
    const [winner, ...others] = results.filter(({ outcome }) => outcome === 'enqueued')
    expect(others).toEqual([])
    expect(results.filter(({ outcome }) => outcome === 'busy').map(({ run }) => run)).toEqual(
      Array(5).fill(winner?.run),
    )
    await world.until(async () => (await ended(world)).length === 1, 'its end')
    expect((await second.job.enqueue('report')).outcome).toBe('enqueued')
    await world.until(async () => (await ended(world)).length === 2, 'the next')
    expect(first.starts).toHaveLength(2)
  })

  behaviour(
    'X16',
    'Works for event-triggered (enqueued) work too, not only for periodic triggers. (its holder crashes, and no trigger comes again)',
    async (world) => {
      const first = await startWorker(world, { hangs: () => true })
      await first.job.enqueue('report')
      await world.until(() => first.starts.length === 1, 'the first attempt')
      world.crash(first.belfry)
      const second = await startWorker(world)
      expect((await second.job.enqueue('report')).outcome).toBe('busy')
      await world.until(async () => (await ended(world)).length === 1, 'the takeover')
      expect(second.starts).toMatchObject([{ attempt: 2 }])
      expect(await ended(world)).toMatchObject([{ origin: 'enqueue', state: 'succeeded', takeovers: 1 }])
    },
  )
})

// ── Instances ───────────────────────────────────────────────────────────────────────────────────────────────────────

async function start(world: World, options: InstanceOptions = {}): Promise<Belfry> {
  const belfry = await world.instance(options)
  await belfry.start()
  return belfry
}

interface Start {
  readonly run: string
  readonly attempt: number
  readonly token: number
  readonly signal: AbortSignal
}

interface WorkerOptions extends InstanceOptions {
  readonly exclusive?: { readonly whenBusy: 'skip' | 'wait' }
  readonly takesMs?: number
  /** Which attempts run until they are aborted. */
  readonly hangs?: (start: Start) => boolean
  /** Whether the handler ignores its signal. */
  readonly deaf?: boolean
  readonly starts?: Start[]
}

/** An instance with the exclusive job `work`; records every start, and the most that ran here at once. */
async function startWorker(
  world: World,
  { exclusive, takesMs = 0, hangs = () => false, deaf = false, starts = [], ...options }: WorkerOptions = {},
) {
  const belfry = await world.instance(options)
  let [active, most] = [0, 0]
  const work = async ({ run, token, signal }: HandlerContext<unknown>) => {
    const start = { run: run.id, attempt: run.attempt, token, signal }
    starts.push(start)
    active += 1
    most = Math.max(most, active)
    try {
      if (hangs(start)) await aborted(signal)
      else if (takesMs > 0) await (deaf ? world.sleep(takesMs) : Promise.race([world.sleep(takesMs), aborted(signal)]))
      if (!deaf) signal.throwIfAborted()
    } finally {
      active -= 1
    }
  }
  const job = belfry.job('work', { exclusive: exclusive ?? true, run: work })
  await belfry.start()
  return { belfry, job, starts, most: () => most }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve())
  })
}

/** The most callers that were inside at once. */
async function atOnce(world: World, run: (inside: (ms: number) => Promise<void>) => Promise<void>): Promise<number> {
  let [active, most] = [0, 0]
  await run(async (ms) => {
    active += 1
    most = Math.max(most, active)
    await world.sleep(ms)
    active -= 1
  })
  return most
}

// ── Looking into the store ──────────────────────────────────────────────────────────────────────────────────────────

/** The store as several processes would open it. */
async function openHandles(world: World, count: number): Promise<Store[]> {
  const handles: Store[] = []
  const wrap = (store: Store) => {
    handles.push(store)
    return store
  }
  for (let number = 0; number < count; number += 1) await start(world, { roles: [], wrap })
  return handles
}

function countingLeases(store: Store, calls: string[]): Store {
  const leases = new Proxy(store.leases, {
    get(target, name, receiver) {
      calls.push(String(name))
      return Reflect.get(target, name, receiver)
    },
  })
  return { ...store, leases }
}

function acquire(store: Store, name: string, holder: string, ttlMs = 1_000): Promise<AcquireResult> {
  return store.leases.acquire({ name, holder, ttlMs, permits: 1, floor: 0 })
}

function leaseOf(result: AcquireResult | undefined) {
  if (result?.acquired) return result.lease
  throw new Error('the lock was not acquired')
}

/** The name of the lease that a run of `work` holds. */
function keyOf(payload: string): string {
  return `job:work:${JSON.stringify(payload)}`
}

async function ended(world: World): Promise<readonly Run[]> {
  return (await world.runs({ job: 'work' })).filter(isFinished)
}

function isTick({ origin }: Run): boolean {
  return origin === 'tick'
}

function complaints(world: World, belfry: Belfry) {
  return world.logs(belfry).filter(({ level }) => level === 'warn' || level === 'error')
}

/** Narrows a value that the test has checked. */
function some<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('expected something')
  return value
}
