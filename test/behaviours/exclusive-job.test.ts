/** Behaviours of exclusive scheduled jobs on lock rows, without synchronised clocks and without tuning the expiry. */
import { expect } from 'vitest'
import type { Lock } from '../../src/api/locks/lock.js'
import type { Belfry } from '../../src/belfry.js'
import type { AcquireResult } from '../../src/core/locks/lease.js'
import { isFinished, type Run } from '../../src/core/runs/run.js'
import type { Store } from '../../src/core/store.js'
import type { HandlerContext } from '../../src/engine/definitions.js'
import { behaviours, type InstanceOptions, type TestBed } from './test-bed.js'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const LEASE_MS = 1_000

behaviours('Exclusive jobs on lock rows', (behaviour) => {
  behaviour(
    'X1',
    'One atomic statement acquires a lock that is absent, expired or already ours; its result tells win or lose.',
    async (bed) => {
      const absent = await acquire(bed.store, 'report', 'ann', 300)
      expect(absent).toMatchObject({ acquired: true, lease: { name: 'report', holder: 'ann' } })
      const rival = await acquire(bed.store, 'report', 'bob')
      expect(rival).toMatchObject({ acquired: false, until: leaseOf(absent).expiresAt })
      const ours = await acquire(bed.store, 'report', 'ann', 400)
      expect(leaseOf(ours).token).toBe(leaseOf(absent).token)
      expect(leaseOf(ours).expiresAt).toBeGreaterThan(leaseOf(absent).expiresAt)
      await bed.until(async () => (await bed.now()) > leaseOf(ours).expiresAt, 'its expiry')
      const expired = await acquire(bed.store, 'report', 'bob')
      expect(leaseOf(expired).token).toBeGreaterThan(leaseOf(ours).token)
      expect(await acquire(bed.store, 'report', 'ann')).toMatchObject({ acquired: false })
    },
  )

  behaviour(
    'X1',
    'One atomic statement acquires a lock that is absent or expired; its result tells win or lose. (twenty at once)',
    async (bed) => {
      const handles = await openHandles(bed, 4)
      let last = 0
      for (const situation of ['absent', 'expired', 'expired again']) {
        const holders = Array.from({ length: 20 }, (_, number) => `${situation} ${number}`)
        const results = await Promise.all(
          holders.map((holder, number) => acquire(handles[number % 4] ?? bed.store, 'report', holder, 200)),
        )
        const [won, ...others] = results.filter(({ acquired }) => acquired)
        expect(others).toEqual([])
        const { token, holder, expiresAt } = leaseOf(won)
        expect(token).toBeGreaterThan(last)
        expect((await bed.store.leases.inspect('report')).map((lease) => lease.holder)).toEqual([holder])
        last = token
        await bed.until(async () => (await bed.now()) > expiresAt, 'its expiry')
      }
    },
  )

  behaviour('X2', 'Losers back off at once; nobody blocks.', async (bed) => {
    const holder = await start(bed)
    const calls: string[] = []
    const loser = await start(bed, { wrap: (store) => countingLeases(store, calls) })
    await holder.lock('report', { ttl: '10s' })
    const before = await bed.now()
    const lost = await Promise.all(Array.from({ length: 20 }, () => loser.lock('report', { ttl: '10s' })))
    expect(lost).toEqual(Array(20).fill(undefined))
    expect((await bed.now()) - before).toBeLessThan(SECOND_MS)
    expect(calls).toEqual(Array(20).fill('acquire'))
    await expect(loser.withLock('report', () => 'done')).rejects.toThrow(expect.objectContaining({ code: 'LOCK_BUSY' }))
  })

  behaviour('X2', 'Losers back off at once; nobody blocks. (runs)', async (bed) => {
    const holder = await startWorker(bed, { takesMs: 1_500, exclusive: { whenBusy: 'wait' } })
    await holder.job.enqueue('report')
    await bed.until(() => holder.starts.length === 1, 'the holder')
    const belfry = await bed.instance({ concurrency: 1 })
    belfry.job('work', { exclusive: { whenBusy: 'wait' }, run: () => undefined })
    const other = belfry.job('other', { run: () => undefined })
    await belfry.start()
    // This instance has one slot. A run of `work` that waited for its key in the slot would block the other job.
    for (let number = 0; number < 5; number += 1) await holder.job.enqueue('report')
    const { run } = await other.enqueue(undefined)
    await bed.until(async () => (await bed.store.runs.get(run))?.state === 'succeeded', 'the other job')
    const states = (await bed.runs({ job: 'work' })).map(({ state }) => state)
    expect(states).toEqual(['running', ...Array(5).fill('waiting')])
  })

  behaviour(
    'X3',
    'Re-acquiring by the same holder succeeds and extends, with the same token. The holder is an acquisition, not an instance: `lock(name, { holder: lock })` re-enters, with as many releases as acquisitions; a plain second `lock(name)` in the same process is a rival (X14).',
    async (bed) => {
      const belfry = await start(bed)
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
    async (bed) => {
      const belfry = await start(bed)
      const rival = await start(bed)
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
    async (bed) => {
      const belfry = await start(bed)
      const rival = await start(bed)
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
    async (bed) => {
      const belfry = await start(bed)
      const outer = some(await belfry.lock('report', { ttl: '1h', renew: false }))
      const [before] = await belfry.locks.inspect('report')
      for (const ttl of [{}, { ttl: '300ms' }]) {
        const inner = some(await belfry.lock('report', { holder: outer, ...ttl }))
        expect((await belfry.locks.inspect('report'))[0]?.expiresAt).toBeGreaterThanOrEqual(before?.expiresAt ?? 0)
        await inner.release()
      }
      await bed.elapse(500)
      expect(outer.signal.aborted).toBe(false)
    },
  )

  behaviour(
    'X3',
    'Re-acquiring by the same holder succeeds and extends, with the same token. (a lock that was lost is not entered again under the old name)',
    async (bed) => {
      const belfry = await start(bed)
      const rival = await start(bed)
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
    async (bed) => {
      const { leases } = bed.store
      const { token, expiresAt } = leaseOf(await acquire(bed.store, 'report', 'ann', 300))
      const renew = async (holder: string, withToken: number) =>
        (await leases.renew([{ name: 'report', holder, token: withToken, ttlMs: 600 }]))[0]
      expect(await renew('bob', token)).toBeUndefined()
      expect(await renew('ann', token - 1)).toBeUndefined()
      expect(await renew('ann', token + 1)).toBeUndefined()
      expect((await leases.inspect('report'))[0]?.expiresAt).toBe(expiresAt)
      await bed.until(async () => (await bed.now()) > expiresAt, 'its expiry')
      expect(await leases.inspect('report')).toEqual([])
      const extended = await renew('ann', token)
      expect(extended).toMatchObject({ holder: 'ann', token })
      expect(await acquire(bed.store, 'report', 'bob')).toMatchObject({ acquired: false })
      await bed.until(async () => (await bed.now()) > (extended?.expiresAt ?? 0), 'its expiry')
      const successor = leaseOf(await acquire(bed.store, 'report', 'bob', 5_000))
      expect(await renew('ann', token)).toBeUndefined()
      expect(await renew('ann', successor.token)).toBeUndefined()
      expect(await leases.inspect('report')).toEqual([successor])
    },
  )

  behaviour(
    'X4',
    'Only the holder can extend; it may extend a lock that has expired if nobody took it. (after a stall, and it renews itself again)',
    async (bed) => {
      const belfry = await start(bed)
      const rival = await start(bed)
      const lock = some(await belfry.lock('report', { ttl: '1s' }))
      const { token } = lock
      bed.hold(belfry)
      await bed.elapse(1_500)
      expect(await bed.store.leases.inspect('report')).toEqual([])
      bed.resume(belfry)
      await bed.until(async () => (await bed.store.leases.inspect('report')).length > 0, 'the renewal')
      expect(await bed.settled(lock.extend('1s'))).toBe(true)
      expect(lock.token).toBe(token)
      await bed.elapse(2_000)
      expect(lock.signal.aborted).toBe(false)
      expect(await rival.lock('report')).toBeUndefined()
    },
  )

  behaviour('X5', 'A failed extend aborts the job fast (its AbortSignal fires, with a reason).', async (bed) => {
    const belfry = await start(bed)
    const rival = await start(bed)
    const lock = some(await belfry.lock('report', { ttl: '300ms', renew: false }))
    await bed.elapse(400)
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
    async (bed) => {
      const belfry = await start(bed)
      const lock = some(await belfry.lock('report', { ttl: '1s' }))
      await belfry.locks.reset('report')
      const resetAt = await bed.now()
      await bed.until(() => lock.signal.aborted, 'the signal')
      expect((await bed.now()) - resetAt).toBeLessThan(600)
      expect(lock.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
      expect(await lock.release()).toBe(false)
    },
  )

  for (const hints of [true, false]) {
    behaviour(
      'X5',
      `A failed extend aborts the job fast (its AbortSignal fires, with a reason). (a run whose key was taken from it, ${hints ? 'with' : 'without'} hints)`,
      async (bed) => {
        const { belfry, job, starts } = await startWorker(bed, {
          hangs: (start) => start.attempt === 1,
          wrap: (store) => (hints ? store : { ...store, subscribe: () => () => {} }),
        })
        await job.enqueue('report')
        await bed.until(() => starts.length === 1, 'the first attempt')
        expect(await belfry.locks.reset(keyOf('report'))).toBe(1)
        const resetAt = await bed.now()
        await bed.until(() => starts[0]?.signal.aborted === true, 'its signal')
        expect((await bed.now()) - resetAt).toBeLessThan(LEASE_MS)
        expect(starts[0]?.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
        await bed.until(async () => (await ended(bed)).length === 1, 'the second attempt')
        expect(await ended(bed)).toMatchObject([{ state: 'succeeded', attempt: 2, failures: 0 }])
      },
    )
  }

  behaviour('X6', 'Only the holder can release.', async (bed) => {
    const { leases } = bed.store
    const first = leaseOf(await acquire(bed.store, 'report', 'ann', 300))
    expect(await leases.release({ name: 'report', holder: 'bob' })).toBe(false)
    expect(await leases.release({ name: 'other', holder: 'ann' })).toBe(false)
    expect(await leases.inspect('report')).toEqual([first])
    await bed.until(async () => (await bed.now()) > first.expiresAt, 'its expiry')
    const second = leaseOf(await acquire(bed.store, 'report', 'bob', 10_000))
    expect(await leases.release({ name: 'report', holder: 'ann' })).toBe(false)
    expect(await leases.inspect('report')).toEqual([second])
    expect(await leases.release({ name: 'report', holder: 'bob' })).toBe(true)
    expect(await leases.inspect('report')).toEqual([])
    expect(await leases.release({ name: 'report', holder: 'bob' })).toBe(false)
  })

  behaviour('X6', 'Only the holder can release. (the key of a run)', async (bed) => {
    const { job, starts } = await startWorker(bed, { takesMs: 800 })
    await job.enqueue('report')
    await bed.until(() => starts.length === 1, 'the run')
    const [lease] = await bed.store.leases.inspect(keyOf('report'))
    expect(lease).toMatchObject({ token: starts[0]?.token })
    expect(await bed.store.leases.release({ name: keyOf('report'), holder: 'bob' })).toBe(false)
    expect(await acquire(bed.store, keyOf('report'), 'bob')).toMatchObject({ acquired: false })
    await bed.until(async () => (await ended(bed)).length === 1, 'its end')
    expect(await bed.store.leases.inspect(keyOf('report'))).toEqual([])
  })

  behaviour(
    'X7',
    'Releasing early must not let a late instance run the same tick again (locks have a minimum hold, and ticks have their own dedupe). The minimum hold binds a holder that has finished; work handed over unfinished frees its key at once.',
    async (bed) => {
      const belfry = await start(bed)
      const late = await start(bed)
      const lock = some(await belfry.lock('report', { ttl: '300ms', minHold: '1s' }))
      const acquiredAt = await bed.now()
      expect(await lock.release()).toBe(true)
      expect(await late.lock('report')).toBeUndefined()
      await expect(belfry.lock('report', { holder: lock })).rejects.toThrow(/released/)
      const next = some(await bed.settled(late.lock('report', { wait: '3s' })))
      expect((await bed.now()) - acquiredAt).toBeGreaterThanOrEqual(SECOND_MS - 5)
      expect(next.token).toBeGreaterThan(lock.token)
    },
  )

  behaviour(
    'X7',
    'Locks have a minimum hold. (one that was entered twice keeps the longer, whoever leaves last)',
    async (bed) => {
      const belfry = await start(bed)
      const late = await start(bed)
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
    async (bed) => {
      const punctual = await startWorker(bed)
      const late = await startWorker(bed, { starts: punctual.starts })
      await punctual.belfry.schedules.put('tick', {
        at: new Date((await bed.now()) + 500),
        job: 'work',
        payload: 'report',
      })
      bed.hold(late.belfry)
      await bed.until(async () => (await ended(bed)).length === 1, 'the tick')
      bed.resume(late.belfry)
      await bed.elapse(1_500)
      expect(punctual.starts).toHaveLength(1)
      expect(await bed.runs({ job: 'work' })).toMatchObject([{ state: 'succeeded', attempt: 1 }])
    },
  )

  behaviour(
    'X7',
    'The minimum hold binds a holder that has finished; work handed over unfinished frees its key at once.',
    async (bed) => {
      const stopping = await startWorker(bed, { hangs: () => true })
      await stopping.belfry.lock('report', { minHold: '1h' })
      await stopping.job.enqueue('unfinished')
      await bed.until(() => stopping.starts.length === 1, 'the work')
      const next = await startWorker(bed)
      await bed.settled(stopping.belfry.stop({ grace: 0 }))
      const stoppedAt = await bed.now()
      expect(await next.belfry.lock('report')).toBeDefined()
      await bed.until(async () => (await ended(bed)).length === 1, 'the takeover')
      expect((await bed.now()) - stoppedAt).toBeLessThan(SECOND_MS)
      expect(next.starts[0]?.token).toBeGreaterThan(stopping.starts[0]?.token ?? Number.POSITIVE_INFINITY)
    },
  )

  behaviour('X8', "A crashed holder's job runs again after expiry, on another instance.", async (bed) => {
    const first = await startWorker(bed, { hangs: () => true })
    const at = new Date((await bed.now()) + 300)
    await first.belfry.schedules.put('tick', { at, job: 'work', payload: 'report' })
    await bed.until(() => first.starts.length === 1, 'the first attempt')
    const second = await startWorker(bed)
    const crashedAt = await bed.now()
    bed.crash(first.belfry)
    await bed.until(async () => (await ended(bed)).length === 1, 'the takeover')
    const [run] = await ended(bed)
    expect(run).toMatchObject({ state: 'succeeded', attempt: 2, takeovers: 1, failures: 0 })
    expect(run?.instance).toBe(second.belfry.instance)
    expect((run?.startedAt ?? Number.POSITIVE_INFINITY) - crashedAt).toBeLessThanOrEqual(1.5 * LEASE_MS + 500)
    expect(second.starts[0]?.token).toBeGreaterThan(first.starts[0]?.token ?? Number.POSITIVE_INFINITY)
    const outcome = { kind: 'succeeded', result: 'from the grave' } as const
    const dead = { run: run?.id ?? '', token: first.starts[0]?.token ?? 0, outcome }
    expect(await bed.store.runs.settle([dead])).toEqual(['stale'])
  })

  behaviour(
    'X8',
    "A crashed holder's job runs again after expiry, on another instance. (not before: its lease still stands)",
    async (bed) => {
      const first = await startWorker(bed, { hangs: () => true, lease: '2s' })
      await first.job.enqueue('report')
      await bed.until(() => first.starts.length === 1, 'the first attempt')
      const second = await startWorker(bed)
      const [held] = await bed.store.leases.inspect(keyOf('report'))
      bed.crash(first.belfry)
      await bed.until(async () => (await ended(bed)).length === 1, 'the takeover')
      const [run] = await ended(bed)
      expect(run?.startedAt).toBeGreaterThanOrEqual(held?.expiresAt ?? Number.POSITIVE_INFINITY)
      expect(run?.instance).toBe(second.belfry.instance)
    },
  )

  behaviour(
    'X9',
    'Every lock operation is its own short transaction; connection pooling (PgBouncer in transaction mode included) does not affect correctness. (each step over another connection)',
    async (bed) => {
      const handles = await openHandles(bed, 4)
      const via = (number: number) => handles[number % handles.length] ?? bed.store
      let last = 0
      for (let round = 0; round < 8; round += 1) {
        const holder = `holder ${round}`
        const { token } = leaseOf(await acquire(via(round), 'report', holder, 1_000))
        expect(token).toBeGreaterThan(last)
        last = token
        // While an operation is in flight, rivals on every connection find the lock held.
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
    async (bed) => {
      const other = await start(bed)
      const operations: [string, (belfry: Belfry, lock: Lock) => Promise<unknown>][] = [
        ['lock', (belfry) => belfry.lock('second')],
        ['wait', (belfry) => belfry.lock('busy', { wait: '20s' })],
        ['extend', (_, lock) => lock.extend('1m')],
        ['release', (_, lock) => lock.release()],
        ['reset', (belfry) => belfry.locks.reset('report')],
      ]
      const busy = some(await other.lock('busy'))
      for (const [operation, run] of operations) {
        const stopped = await start(bed)
        const lock = some(await stopped.lock('report', { ttl: '1m' }))
        const answer = run(stopped, lock)
        bed.hold(stopped)
        await bed.elapse(100)
        // The stopped instance may hold its locks, but it must not block the name, the table or a connection.
        for (const name of ['report', 'second', 'third']) {
          await bed.settled(other.locks.reset(name), 1_000)
          const taken = await bed.settled(other.lock(name, { ttl: '1m' }), 1_000)
          expect(taken, `${name} after ${operation}`).toBeDefined()
          await taken?.release()
        }
        bed.resume(stopped)
        if (operation === 'wait') await busy.release()
        await bed.settled(answer)
        await bed.settled(stopped.stop())
      }
    },
  )

  behaviour('X9', 'Connection pooling does not affect correctness. (a crowd over few connections)', async (bed) => {
    const instances = [await start(bed), await start(bed), await start(bed)]
    const tokens: number[] = []
    const most = await atOnce(bed, async (inside) => {
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
      await bed.settled(Promise.all(turns), 30_000)
    })
    expect(most).toBe(1)
    expect(tokens).toHaveLength(30)
    expect(tokens).toEqual([...new Set(tokens)].sort((one, another) => one - another))
    expect((await bed.store.leases.list({ limit: 10 })).items).toEqual([])
  })

  behaviour(
    'X10',
    'Winners spread: over many ticks no instance takes all of them (load is balanced, and capacity is respected).',
    async (bed) => {
      const workers = [
        await startWorker(bed, { concurrency: 2, takesMs: 100 }),
        await startWorker(bed, { concurrency: 2, takesMs: 100 }),
        await startWorker(bed, { concurrency: 2, takesMs: 100 }),
      ]
      const schedules = Array.from({ length: 12 }, (_, number) => `tick/${number}`)
      const { schedules: api } = some(workers[0]).belfry
      await Promise.all(schedules.map((id) => api.put(id, { every: '1s', job: 'work', payload: id })))
      await bed.until(async () => (await ended(bed)).length >= 36, 'three ticks of each')
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
    async (bed) => {
      const workers = [await startWorker(bed), await startWorker(bed), await startWorker(bed)]
      const { schedules } = some(workers[0]).belfry
      for (let number = 0; number < 5; number += 1) {
        await schedules.put(`tick/${number}`, { every: '1s', job: 'work', payload: number })
        await bed.elapse(170)
      }
      // Chance alone leaves one of the three workers without any of 20 ticks once in a thousand runs of this test; of
      // 50 ticks, practically never.
      await bed.until(async () => (await ended(bed)).length >= 50, 'ten ticks of each')
      const shares = workers.map(({ starts }) => starts.length)
      expect(Math.min(...shares)).toBeGreaterThan(0)
    },
  )

  behaviour(
    'X11',
    'An operator may reset a lock by hand (CLI/API/SQL) and everything recovers. (a lock)',
    async (bed) => {
      const crashed = await start(bed)
      const operator = await start(bed, { roles: [] })
      const stuck = some(await crashed.lock('report', { ttl: '1h' }))
      bed.crash(crashed)
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
    async (bed) => {
      const holder = await start(bed)
      const waiter = await start(bed)
      const lock = some(await holder.lock('report', { ttl: '10s' }))
      const waiting = waiter.lock('report', { wait: '10s', ttl: '10s' })
      await bed.elapse(300)
      await waiter.locks.reset('report')
      const resetAt = await bed.now()
      const next = some(await bed.settled(waiting))
      expect((await bed.now()) - resetAt).toBeLessThan(SECOND_MS)
      await bed.until(() => lock.signal.aborted, "the holder's signal", 5_000)
      expect(await lock.release()).toBe(false)
      expect(await waiter.locks.inspect('report')).toMatchObject([{ token: next.token }])
    },
  )

  behaviour(
    'X11',
    'An operator may reset a lock by hand (CLI/API/SQL) and everything recovers. (the key of runs that wait)',
    async (bed) => {
      let first: string | undefined
      const worker = await startWorker(bed, {
        exclusive: { whenBusy: 'wait' },
        hangs: ({ attempt, run }) => {
          first ??= run
          return attempt === 1 && run === first
        },
      })
      await worker.job.enqueue('report')
      await worker.job.enqueue('report')
      await worker.job.enqueue('report')
      await bed.until(() => worker.starts.length === 1, 'one that hangs')
      await bed.elapse(300)
      expect(worker.starts).toHaveLength(1)
      expect(await worker.belfry.locks.reset(keyOf('report'))).toBe(1)
      await bed.until(async () => (await ended(bed)).length === 3, 'all of them')
      expect((await ended(bed)).map(({ state }) => state)).toEqual(['succeeded', 'succeeded', 'succeeded'])
      expect(await worker.belfry.locks.inspect(keyOf('report'))).toEqual([])
    },
  )

  behaviour('X12', 'Lock names are 1–255 characters; anything else is a clear error.', async (bed) => {
    const belfry = await start(bed)
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
    async (bed) => {
      const fast = await startWorker(bed, { skewMs: 10 * MINUTE_MS })
      const slow = await startWorker(bed, { skewMs: -10 * MINUTE_MS, starts: fast.starts })
      const right = await startWorker(bed, { starts: fast.starts })
      const before = await bed.now()
      const { anchor } = await fast.belfry.schedules.put('tick', { every: '1s', job: 'work', payload: 'tick' })
      expect(anchor - before).toBeLessThan(SECOND_MS)
      const delayed = await slow.job.enqueue('delayed', { in: '1s' })
      const triggered = await right.belfry.schedules.trigger('tick')
      await bed.until(async () => (await ended(bed)).filter(isTick).length >= 3, 'three ticks')
      await bed.until(async () => (await ended(bed)).some(({ id }) => id === delayed.run), 'the delayed one')
      const runs = await bed.runs({ job: 'work' })
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
      for (const { belfry } of [fast, slow, right]) expect(complaints(bed, belfry)).toEqual([])
    },
  )

  behaviour(
    'X13',
    "Instances' clocks need not agree: the store's clock decides. Instances skewed by ±10 minutes change nothing. (locks)",
    async (bed) => {
      const fast = await start(bed, { skewMs: 10 * MINUTE_MS })
      const slow = await start(bed, { skewMs: -10 * MINUTE_MS })
      let last = 0
      for (const [holder, rival] of [
        [fast, slow],
        [slow, fast],
      ] as const) {
        const lock = some(await holder.lock('report', { ttl: '400ms', renew: false }))
        expect(lock.token).toBeGreaterThan(last)
        expect(await rival.lock('report')).toBeUndefined()
        const since = await bed.now()
        const taken = some(await bed.settled(rival.lock('report', { wait: '2s', ttl: '400ms' })))
        expect((await bed.now()) - since).toBeLessThan(SECOND_MS)
        expect(taken.token).toBeGreaterThan(lock.token)
        expect(lock.signal.aborted).toBe(true)
        expect(await lock.release()).toBe(false)
        expect(await taken.release()).toBe(true)
        last = taken.token
      }
      const renewed = some(await slow.lock('report', { ttl: '1s' }))
      await bed.elapse(2_000)
      expect(renewed.signal.aborted).toBe(false)
      expect(await fast.lock('report')).toBeUndefined()
    },
  )

  behaviour(
    'X13',
    "Instances' clocks need not agree: the store's clock decides. Instances skewed by ±10 minutes change nothing. (takeover)",
    async (bed) => {
      const fast = await startWorker(bed, { skewMs: 10 * MINUTE_MS, takesMs: 2_500 })
      const slow = await startWorker(bed, { skewMs: -10 * MINUTE_MS, hangs: () => true, jobs: [] })
      await fast.job.enqueue('alive')
      await bed.until(async () => (await ended(bed)).length === 1, 'a run longer than the lease')
      expect(await ended(bed)).toMatchObject([{ attempt: 1, takeovers: 0 }])
      expect(slow.starts).toEqual([])
      await fast.job.enqueue('doomed')
      await bed.until(() => fast.starts.length === 2, 'the doomed one')
      bed.crash(fast.belfry)
      const heir = await startWorker(bed, { skewMs: -10 * MINUTE_MS })
      await bed.until(async () => (await ended(bed)).length === 2, 'the takeover', 5_000)
      expect(heir.starts).toMatchObject([{ attempt: 2 }])
    },
  )

  behaviour(
    'X14',
    'One instance cannot overlap itself: each acquisition has its own token, not only a static instance id.',
    async (bed) => {
      const belfry = await start(bed)
      const first = some(await belfry.lock('report'))
      expect(await belfry.lock('report')).toBeUndefined()
      await first.release()
      const second = some(await belfry.lock('report'))
      expect(second.token).toBeGreaterThan(first.token)
      expect(await first.release()).toBe(false)
      expect(await belfry.locks.inspect('report')).toMatchObject([{ token: second.token }])
      const most = await atOnce(bed, async (inside) => {
        const turns = Array.from({ length: 10 }, () =>
          belfry.withLock('shared', () => inside(30), { wait: '10s', ttl: '2s' }),
        )
        await bed.settled(Promise.all(turns))
      })
      expect(most).toBe(1)
    },
  )

  behaviour('X14', 'One instance cannot overlap itself: each acquisition has its own token. (runs)', async (bed) => {
    const worker = await startWorker(bed, { exclusive: { whenBusy: 'wait' }, takesMs: 60, concurrency: 10 })
    await worker.job.enqueueMany(Array.from({ length: 8 }, () => ({ payload: 'report' })))
    await bed.until(async () => (await ended(bed)).length === 8, 'all of them')
    expect(worker.most()).toBe(1)
    const tokens = worker.starts.map(({ token }) => token)
    expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other))
    expect(tokens).toHaveLength(8)
  })

  behaviour(
    'X14',
    'One instance cannot overlap itself: each acquisition has its own token. (its own earlier attempt counts as another holder)',
    async (bed) => {
      const worker = await startWorker(bed, { takesMs: 1_500, deaf: true })
      const { run } = await worker.job.enqueue('report')
      await bed.until(() => worker.starts.length === 1, 'the first attempt')
      await worker.belfry.locks.reset(keyOf('report'))
      await bed.until(() => worker.starts.length === 2, 'the second attempt, beside the first')
      const [first, second] = worker.starts
      expect(second?.token).toBeGreaterThan(first?.token ?? Number.POSITIVE_INFINITY)
      const outcome = { kind: 'succeeded', result: 'too late' } as const
      expect(await bed.store.runs.settle([{ run, token: first?.token ?? 0, outcome }])).toEqual(['stale'])
      await bed.until(async () => (await ended(bed)).length === 1, 'its end')
      expect(await ended(bed)).toMatchObject([{ token: second?.token, attempt: 2 }])
    },
  )

  behaviour('X15', 'Expiry need not be hand-tuned: leases renew themselves while the work runs.', async (bed) => {
    const worker = await startWorker(bed, { takesMs: 3_000 })
    const rival = await startWorker(bed, { starts: worker.starts })
    const lock = some(await worker.belfry.lock('report', { ttl: '1s' }))
    await worker.job.enqueue('report')
    const since = await bed.now()
    while ((await bed.now()) - since < 2_800) {
      expect(await rival.belfry.lock('report')).toBeUndefined()
      await bed.elapse(200)
    }
    await bed.until(async () => (await ended(bed)).length === 1, 'the long run')
    expect(lock.signal.aborted).toBe(false)
    expect(await ended(bed)).toMatchObject([{ state: 'succeeded', attempt: 1, takeovers: 0 }])
    expect(worker.starts).toHaveLength(1)
    expect(await lock.release()).toBe(true)
    expect(await rival.belfry.lock('report')).toBeDefined()
  })

  behaviour('X16', 'Works for event-triggered (enqueued) work too, not only for periodic triggers.', async (bed) => {
    const exclusive = { whenBusy: 'skip' } as const
    const first = await startWorker(bed, { exclusive, takesMs: 200 })
    const second = await startWorker(bed, { exclusive, takesMs: 200, starts: first.starts })
    const results = await Promise.all(
      Array.from({ length: 6 }, (_, number) => (number % 2 === 0 ? first : second).job.enqueue('report')),
    )
    const [winner, ...others] = results.filter(({ outcome }) => outcome === 'enqueued')
    expect(others).toEqual([])
    expect(results.filter(({ outcome }) => outcome === 'busy').map(({ run }) => run)).toEqual(
      Array(5).fill(winner?.run),
    )
    await bed.until(async () => (await ended(bed)).length === 1, 'its end')
    expect((await second.job.enqueue('report')).outcome).toBe('enqueued')
    await bed.until(async () => (await ended(bed)).length === 2, 'the next')
    expect(first.starts).toHaveLength(2)
  })

  behaviour(
    'X16',
    'Works for event-triggered (enqueued) work too, not only for periodic triggers. (its holder crashes, and no trigger comes again)',
    async (bed) => {
      const exclusive = { whenBusy: 'skip' } as const
      const first = await startWorker(bed, { exclusive, hangs: () => true })
      await first.job.enqueue('report')
      await bed.until(() => first.starts.length === 1, 'the first attempt')
      bed.crash(first.belfry)
      const second = await startWorker(bed, { exclusive })
      expect((await second.job.enqueue('report')).outcome).toBe('busy')
      await bed.until(async () => (await ended(bed)).length === 1, 'the takeover')
      expect(second.starts).toMatchObject([{ attempt: 2 }])
      expect(await ended(bed)).toMatchObject([{ origin: 'enqueue', state: 'succeeded', takeovers: 1 }])
    },
  )
})

// ── Instances ───────────────────────────────────────────────────────────────────────────────────────────────────────

async function start(bed: TestBed, options: InstanceOptions = {}): Promise<Belfry> {
  const belfry = await bed.instance(options)
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

/** An instance with the exclusive job `work`. Records every start, and the highest number of its runs at one time. */
async function startWorker(
  bed: TestBed,
  { exclusive, takesMs = 0, hangs = () => false, deaf = false, starts = [], ...options }: WorkerOptions = {},
) {
  const belfry = await bed.instance(options)
  let [active, most] = [0, 0]
  const work = async ({ run, token, signal }: HandlerContext<unknown>) => {
    const start = { run: run.id, attempt: run.attempt, token, signal }
    starts.push(start)
    active += 1
    most = Math.max(most, active)
    try {
      if (hangs(start)) await aborted(signal)
      else if (takesMs > 0) await (deaf ? bed.sleep(takesMs) : Promise.race([bed.sleep(takesMs), aborted(signal)]))
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

/** Counts how many callers are inside `inside()` at the same time, and returns the maximum. */
async function atOnce(bed: TestBed, run: (inside: (ms: number) => Promise<void>) => Promise<void>): Promise<number> {
  let [active, most] = [0, 0]
  await run(async (ms) => {
    active += 1
    most = Math.max(most, active)
    await bed.sleep(ms)
    active -= 1
  })
  return most
}

// ── Looking into the store ──────────────────────────────────────────────────────────────────────────────────────────

/** One handle on the store for each of several processes. */
async function openHandles(bed: TestBed, count: number): Promise<Store[]> {
  const handles: Store[] = []
  const wrap = (store: Store) => {
    handles.push(store)
    return store
  }
  for (let number = 0; number < count; number += 1) await start(bed, { roles: [], wrap })
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

async function ended(bed: TestBed): Promise<readonly Run[]> {
  return (await bed.runs({ job: 'work' })).filter(isFinished)
}

function isTick({ origin }: Run): boolean {
  return origin === 'tick'
}

function complaints(bed: TestBed, belfry: Belfry) {
  return bed.logs(belfry).filter(({ level }) => level === 'warn' || level === 'error')
}

/** Returns a value that must be defined, without `undefined` in its type. */
function some<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('expected something')
  return value
}
