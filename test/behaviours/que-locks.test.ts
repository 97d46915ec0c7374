/** Behaviours of que-locks, which makes jobs exclusive. "(fix)" marks what que-locks documents as its limits. */
import { expect } from 'vitest'
import type { BelfryOptions, Job, JobOptions, Json, Store } from '../../src/index.js'
import { behaviours, type TestBed } from './test-bed.js'

type AnyJob = Job<Json | undefined>
type WorkerOptions = Partial<Pick<BelfryOptions, 'concurrency' | 'roles'>> & { wrap?: (store: Store) => Store }

/** Copies of a run are dropped only where the job says so. */
const SKIP = { whenBusy: 'skip' } as const

/** Counts concurrent executions: the maximum per key, and in total. */
function gauge() {
  const now = new Map<string, number>()
  let together = 0
  const seen = { mostOfOneKey: 0, mostTogether: 0, executions: 0 }
  return {
    seen,
    async during(key: string, work: () => Promise<unknown>): Promise<void> {
      const of = (now.get(key) ?? 0) + 1
      now.set(key, of)
      together += 1
      seen.executions += 1
      seen.mostOfOneKey = Math.max(seen.mostOfOneKey, of)
      seen.mostTogether = Math.max(seen.mostTogether, together)
      await work()
      now.set(key, (now.get(key) ?? 1) - 1)
      together -= 1
    },
  }
}

/** Handlers wait until the test opens the gate. */
function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** Starts instances that all run the job; returns the last one's job for enqueueing. */
async function workers(
  bed: TestBed,
  count: number,
  options: JobOptions<Json>,
  instance: WorkerOptions = {},
): Promise<AnyJob> {
  let job: AnyJob | undefined
  for (let started = 0; started < count; started += 1) {
    const belfry = await bed.instance(instance)
    job = belfry.job('sync', options)
    await belfry.start()
  }
  if (job === undefined) throw new Error('start at least one instance')
  return job
}

/** An instance that enqueues and runs nothing. */
function enqueuer(bed: TestBed, options: Omit<JobOptions<Json>, 'run'>): Promise<AnyJob> {
  return workers(bed, 1, { ...options, run: () => null }, { roles: [] })
}

async function states(bed: TestBed, job = 'sync'): Promise<readonly string[]> {
  return (await bed.runs({ job })).map(({ state }) => state)
}

async function untilState(bed: TestBed, run: string, state: string): Promise<void> {
  await bed.until(async () => (await bed.store.runs.get(run))?.state === state, `run ${run} to be ${state}`)
}

function untilOver(bed: TestBed, job = 'sync'): Promise<void> {
  const open = ['ready', 'waiting', 'running']
  return bed.until(async () => (await states(bed, job)).every((state) => !open.includes(state)), 'all runs to end')
}

/** Counts every store call of an instance, except claims that found nothing: those are polls. */
function countingStore() {
  const calls: string[] = []
  const counted = <Part extends object>(part: Part, area: string): Part =>
    new Proxy(part, {
      get(target, name, receiver) {
        const member: unknown = Reflect.get(target, name, receiver)
        if (typeof member !== 'function') return member
        return async (...args: unknown[]) => {
          const result: unknown = await Reflect.apply(member, target, args)
          const isPoll = name === 'claim' && (result as { runs: readonly unknown[] }).runs.length === 0
          if (!isPoll) calls.push(`${area}.${String(name)}`)
          return result
        }
      },
    })
  const wrap = (store: Store): Store => ({
    supports: store.supports,
    schedules: counted(store.schedules, 'schedules'),
    runs: counted(store.runs, 'runs'),
    leases: counted(store.leases, 'leases'),
    instances: store.instances,
    records: store.records,
    open: () => store.open(),
    close: () => store.close(),
    now: () => store.now(),
    subscribe: (listener) => store.subscribe(listener),
    freeze: (note) => store.freeze(note),
    thaw: () => store.thaw(),
    frozen: () => store.frozen(),
  })
  /** The calls that concern runs and locks. An idle instance makes the others too: ticks, beats, takeovers. */
  const ofWork = () =>
    calls.filter((call) => /^(runs\.(enqueue|available|claim|settle|get|list|stamp)|leases\.)/.test(call))
  return { wrap, ofWork }
}

behaviours('que-locks', (behaviour) => {
  behaviour(
    'Q1',
    'An exclusive job has at most one run executing at any instant for the same arguments.',
    async (bed) => {
      const { seen, during } = gauge()
      const job = await workers(bed, 4, {
        exclusive: { ...SKIP, checkOnEnqueue: false },
        run: () => during('eu', () => bed.sleep(30)),
      })
      for (let round = 0; round < 8; round += 1) {
        await Promise.all(Array.from({ length: 5 }, () => job.enqueue({ region: 'eu' })))
        await bed.elapse(20)
      }
      await untilOver(bed)
      expect(seen.mostOfOneKey).toBe(1)
      expect(seen.executions).toBeGreaterThan(1)
    },
  )

  behaviour('Q1', 'Runs of schedules, triggers and enqueues alike execute one at a time.', async (bed) => {
    const { seen, during } = gauge()
    const belfry = await bed.instance()
    const job = belfry.job('sync', {
      exclusive: { whenBusy: 'wait' },
      run: () => during('eu', () => bed.sleep(50)),
    })
    belfry.schedule('sync/eu', { every: '1s', job, payload: { region: 'eu' } })
    await belfry.start()
    await job.enqueue({ region: 'eu' })
    await belfry.schedules.trigger('sync/eu')
    await bed.until(() => seen.executions >= 4, 'two ticks, the trigger and the enqueue to run')
    expect(seen.mostOfOneKey).toBe(1)
  })

  behaviour('Q2', 'Different arguments execute in parallel.', async (bed) => {
    const { seen, during } = gauge()
    const { opened, open } = gate()
    const job = await workers(bed, 2, {
      exclusive: SKIP,
      run: ({ payload }) => during(JSON.stringify(payload), () => opened),
    })
    await job.enqueue({ region: 'eu' })
    await job.enqueue({ region: 'us' })
    await bed.until(() => seen.mostTogether === 2, 'both regions to run at once')
    open()
    await untilOver(bed)
    expect(seen.mostOfOneKey).toBe(1)
    expect(await states(bed)).toEqual(['succeeded', 'succeeded'])
  })

  behaviour('Q2', 'A job without arguments is globally single.', async (bed) => {
    const { seen, during } = gauge()
    const job = await workers(bed, 3, {
      exclusive: { whenBusy: 'wait' },
      run: () => during('it', () => bed.sleep(20)),
    })
    await Promise.all(Array.from({ length: 6 }, () => job.enqueue(undefined)))
    await untilOver(bed)
    expect(seen).toEqual({ mostOfOneKey: 1, mostTogether: 1, executions: 6 })
  })

  behaviour(
    'Q3',
    'A copy that is dequeued while the first executes is skipped (and recorded as skipped, with the reason).',
    async (bed) => {
      const { opened, open } = gate()
      const { seen, during } = gauge()
      const job = await workers(bed, 2, {
        exclusive: { ...SKIP, checkOnEnqueue: false },
        run: () => during('eu', () => opened),
      })
      const first = await job.enqueue({ region: 'eu' })
      await untilState(bed, first.run, 'running')
      const copy = await job.enqueue({ region: 'eu' })
      await untilState(bed, copy.run, 'skipped')
      expect(await bed.store.runs.get(copy.run)).toMatchObject({ state: 'skipped', reason: 'busy', attempt: 0 })
      open()
      await untilState(bed, first.run, 'succeeded')
      expect(seen.executions).toBe(1)
    },
  )

  behaviour(
    'Q4',
    'Enqueue is skipped when as many runs of the same key as its limit are due: the caller is told which run won.',
    async (bed) => {
      const job = await enqueuer(bed, { exclusive: { ...SKIP, limit: 2 } })
      const first = await job.enqueue({ region: 'eu' })
      const second = await job.enqueue({ region: 'eu' })
      const third = await job.enqueue({ region: 'eu' })
      expect([first.outcome, second.outcome, third.outcome]).toEqual(['enqueued', 'enqueued', 'busy'])
      expect([first.run, second.run]).toContain(third.run)
      expect(await job.enqueue({ region: 'us' })).toMatchObject({ outcome: 'enqueued' })
      expect(await states(bed)).toEqual(['ready', 'ready', 'ready'])
    },
  )

  behaviour('Q4', 'Enqueue is skipped while a run of the key is running.', async (bed) => {
    const { opened, open } = gate()
    const job = await workers(bed, 1, { exclusive: SKIP, run: () => opened })
    const first = await job.enqueue({ region: 'eu' })
    await untilState(bed, first.run, 'running')
    expect(await job.enqueue({ region: 'eu' })).toEqual({ outcome: 'busy', run: first.run })
    open()
    await untilState(bed, first.run, 'succeeded')
    expect(await job.enqueue({ region: 'eu' })).toMatchObject({ outcome: 'enqueued' })
  })

  behaviour('Q4', 'Enqueue is skipped while a run of the key is between attempts.', async (bed) => {
    let failing = true
    const job = await workers(bed, 1, {
      exclusive: SKIP,
      retry: { attempts: 2, backoff: 'fixed', delay: '1s' },
      run: () => {
        if (failing) throw new Error('not yet')
      },
    })
    const first = await job.enqueue({ region: 'eu' })
    await bed.until(async () => (await bed.store.runs.get(first.run))?.failures === 1, 'the first attempt to fail')
    expect(await job.enqueue({ region: 'eu' })).toEqual({ outcome: 'busy', run: first.run })
    failing = false
    await untilState(bed, first.run, 'succeeded')
    expect(await states(bed)).toEqual(['succeeded'])
  })

  behaviour('Q4', 'Runs delayed to the future neither block nor are blocked until due.', async (bed) => {
    const { opened, open } = gate()
    const job = await workers(bed, 1, { exclusive: SKIP, run: () => opened })
    const later = await job.enqueue({ region: 'eu' }, { in: '1s' })
    const now = await job.enqueue({ region: 'eu' })
    expect([later.outcome, now.outcome]).toEqual(['enqueued', 'enqueued'])
    await untilState(bed, now.run, 'running')
    expect(await job.enqueue({ region: 'eu' }, { in: '1h' })).toMatchObject({ outcome: 'enqueued' })
    // The later run becomes due while the key is held, so it is skipped like any other copy.
    await untilState(bed, later.run, 'skipped')
    open()
    await untilState(bed, now.run, 'succeeded')
  })

  behaviour('Q4', 'The same key at the same instant is one run.', async (bed) => {
    const job = await enqueuer(bed, { exclusive: SKIP })
    const at = new Date((await bed.now()) + 3_600_000)
    const first = await job.enqueue({ region: 'eu' }, { at })
    expect(first.outcome).toBe('enqueued')
    expect(await job.enqueue({ region: 'eu' }, { at })).toEqual({ outcome: 'busy', run: first.run })
    expect(await job.enqueue({ region: 'us' }, { at })).toMatchObject({ outcome: 'enqueued' })
    expect(await job.enqueue({ region: 'eu' }, { at: new Date(at.getTime() + 1_000) })).toMatchObject({
      outcome: 'enqueued',
    })
  })

  behaviour('Q4', "The enqueue-time check is off by default with `whenBusy: 'wait'`.", async (bed) => {
    const job = await enqueuer(bed, { exclusive: { whenBusy: 'wait' } })
    const first = await job.enqueue({ region: 'eu' })
    const second = await job.enqueue({ region: 'eu' })
    expect([first.outcome, second.outcome]).toEqual(['enqueued', 'enqueued'])
    expect(first.run).not.toBe(second.run)
  })

  behaviour(
    'Q5',
    '100 identical enqueues at once end in at least one execution and never two at once.',
    async (bed) => {
      const { seen, during } = gauge()
      const options: JobOptions<Json> = { exclusive: SKIP, run: () => during('eu', () => bed.sleep(5)) }
      const jobs = [await workers(bed, 1, options), await workers(bed, 1, options), await workers(bed, 1, options)]
      const enqueued = await Promise.all(
        Array.from({ length: 100 }, (_, at) => (jobs[at % 3] as AnyJob).enqueue({ region: 'eu' })),
      )
      await untilOver(bed)
      expect(seen.executions).toBeGreaterThanOrEqual(1)
      expect(seen.mostOfOneKey).toBe(1)
      const accepted = enqueued.filter(({ outcome }) => outcome === 'enqueued')
      expect(await bed.runs({ job: 'sync' })).toHaveLength(accepted.length)
    },
  )

  behaviour('Q6', 'The order of keys in the arguments does not change the lock key (canonical JSON).', async (bed) => {
    const job = await enqueuer(bed, { exclusive: SKIP })
    const first = await job.enqueue({ region: 'eu', user: { id: 7, name: 'Ada' }, tags: ['a', 'b'] })
    const same = await job.enqueue({ tags: ['a', 'b'], user: { name: 'Ada', id: 7 }, region: 'eu' })
    expect(same).toEqual({ outcome: 'busy', run: first.run })
    // A list in another order is another key.
    const other = await job.enqueue({ tags: ['b', 'a'], user: { name: 'Ada', id: 7 }, region: 'eu' })
    expect(other.outcome).toBe('enqueued')
  })

  behaviour(
    'Q8',
    '`available(args)` answers whether an enqueue now would be accepted (nothing of this key is due or executing).',
    async (bed) => {
      const { opened, open } = gate()
      let failures = 0
      const job = await workers(bed, 1, {
        exclusive: SKIP,
        retry: { attempts: 2, backoff: 'fixed', delay: '500ms' },
        run: async () => {
          await opened
          failures += 1
          if (failures === 1) throw new Error('once')
        },
      })
      expect(await job.available({ region: 'eu' })).toBe(true)
      const delayed = await job.enqueue({ region: 'eu' }, { in: '1h' })
      expect(await job.available({ region: 'eu' })).toBe(true)
      const { run } = await job.enqueue({ region: 'eu' })
      expect(await job.available({ region: 'eu' })).toBe(false)
      await untilState(bed, run, 'running')
      expect(await job.available({ region: 'eu' })).toBe(false)
      expect(await job.available({ region: 'us' })).toBe(true)
      open()
      await bed.until(async () => (await bed.store.runs.get(run))?.failures === 1, 'the first attempt to fail')
      expect(await job.available({ region: 'eu' })).toBe(false)
      await untilState(bed, run, 'succeeded')
      expect(await job.available({ region: 'eu' })).toBe(true)
      expect(await bed.store.runs.get(delayed.run)).toMatchObject({ state: 'ready' })
    },
  )

  behaviour('Q8', '`available` neither reserves nor disturbs anything.', async (bed) => {
    const job = await enqueuer(bed, { exclusive: SKIP })
    const answers = await Promise.all(Array.from({ length: 20 }, () => job.available({ region: 'eu' })))
    expect(new Set(answers)).toEqual(new Set([true]))
    expect(await bed.runs({ job: 'sync' })).toEqual([])
    expect((await bed.store.leases.list({ limit: 10 })).items).toEqual([])
    // A call of `available` takes no permit: with two permits and one enqueued run, one stays available.
    const two = await bed.instance({ roles: [] })
    const semaphore = two.job('semaphore', { exclusive: { ...SKIP, limit: 2 }, run: () => null })
    await two.start()
    await semaphore.enqueue(1)
    expect(await semaphore.available(1)).toBe(true)
    expect(await semaphore.available(1)).toBe(true)
    await semaphore.enqueue(1)
    expect(await semaphore.available(1)).toBe(false)
  })

  behaviour(
    'Q9',
    'Jobs that are not exclusive pay nothing for the feature (same number of store calls).',
    async (bed) => {
      const { wrap, ofWork } = countingStore()
      const belfry = await bed.instance({ wrap })
      const plain = belfry.job('plain', { run: () => null })
      belfry.job('exclusive', { exclusive: true, run: () => null })
      await belfry.start()
      const before = ofWork().filter((call) => call !== 'runs.list').length
      for (let round = 0; round < 5; round += 1) {
        const { run } = await plain.enqueue({ round })
        await untilState(bed, run, 'succeeded')
      }
      // One call to enqueue, one to claim, one to settle: the minimum.
      const calls = ofWork().filter((call) => call !== 'runs.list')
      expect(calls.length - before).toBe(15)
      expect(calls.filter((call) => call.startsWith('leases.'))).toEqual([])
    },
  )

  behaviour('Q10', '`job.exclusive` tells whether a job uses the lock.', async (bed) => {
    const belfry = await bed.instance()
    const run = () => null
    expect(belfry.job('plain', { run }).exclusive).toBe(false)
    expect(belfry.job('off', { run, exclusive: false }).exclusive).toBe(false)
    expect(belfry.job('on', { run, exclusive: true }).exclusive).toBe(true)
    expect(belfry.job('by paths', { run, exclusive: { by: ['region'] } }).exclusive).toBe(true)
    expect(belfry.job('by code', { run, exclusive: () => 'same' }).exclusive).toBe(true)
  })

  behaviour('Q11', '(fix) Works with any number of workers per process and with a connection pool.', async (bed) => {
    const { seen, during } = gauge()
    const job = await workers(
      bed,
      2,
      {
        exclusive: { by: ['key'], whenBusy: 'wait' },
        run: ({ payload }) => during(String((payload as { key: number }).key), () => bed.sleep(10)),
      },
      { concurrency: 16 },
    )
    const items = Array.from({ length: 60 }, (_, at) => ({ payload: { key: at % 6, at } }))
    await job.enqueueMany(items)
    await untilOver(bed)
    expect(seen.executions).toBe(60)
    expect(seen.mostOfOneKey).toBe(1)
    expect(seen.mostTogether).toBeGreaterThan(1)
  })

  behaviour('Q12', '(fix) The enqueue-time check can be turned off per job.', async (bed) => {
    const checked = await enqueuer(bed, { exclusive: SKIP })
    await checked.enqueue(1)
    expect((await checked.enqueue(1)).outcome).toBe('busy')
    const belfry = await bed.instance({ roles: [] })
    const unchecked = belfry.job('unchecked', { exclusive: { ...SKIP, checkOnEnqueue: false }, run: () => null })
    const waiting = belfry.job('waiting', {
      exclusive: { whenBusy: 'wait', checkOnEnqueue: true },
      run: () => null,
    })
    await belfry.start()
    await unchecked.enqueue(1)
    expect((await unchecked.enqueue(1)).outcome).toBe('enqueued')
    // The check can also be turned on for `whenBusy: 'wait'`, where it is off by default.
    await waiting.enqueue(1)
    expect((await waiting.enqueue(1)).outcome).toBe('busy')
  })

  behaviour('Q13', '(fix) The lock key can be computed from part of the arguments.', async (bed) => {
    const belfry = await bed.instance({ roles: [] })
    const byPath = belfry.job('by path', { exclusive: { ...SKIP, by: ['user.id', 'region'] }, run: () => null })
    const byCode = belfry.job<{ id: number; note: string }>('by code', {
      exclusive: { ...SKIP, by: ({ id }) => id % 10 },
      run: () => null,
    })
    await belfry.start()
    const first = await byPath.enqueue({ user: { id: 1, name: 'Ada' }, region: 'eu', note: 'a' })
    const same = await byPath.enqueue({ user: { id: 1, name: 'Bob' }, region: 'eu', note: 'b' })
    const other = await byPath.enqueue({ user: { id: 2, name: 'Ada' }, region: 'eu', note: 'a' })
    const absent = await byPath.enqueue({ region: 'eu' })
    expect(same).toEqual({ outcome: 'busy', run: first.run })
    expect([other.outcome, absent.outcome]).toEqual(['enqueued', 'enqueued'])
    const one = await byCode.enqueue({ id: 1, note: 'a' })
    expect(await byCode.enqueue({ id: 11, note: 'b' })).toEqual({ outcome: 'busy', run: one.run })
    expect((await byCode.enqueue({ id: 2, note: 'a' })).outcome).toBe('enqueued')
  })

  behaviour(
    'Q13',
    'A run made without the code waits until an instance with the code computed its key.',
    async (bed) => {
      const { seen, during } = gauge()
      const service = await bed.instance({ roles: ['tick'] })
      await service.start()
      await service.schedules.put('digest/eu', { every: '1h', job: 'digest', payload: { user: 11 } })
      await service.schedules.trigger('digest/eu')
      await service.schedules.trigger('digest/eu')
      expect((await bed.runs({ job: 'digest' })).map(({ waitsFor }) => waitsFor)).toEqual(['stamp', 'stamp'])
      const worker = await bed.instance()
      worker.job<{ user: number }>('digest', {
        exclusive: { by: ({ user }) => user % 10, whenBusy: 'wait' },
        run: () => during('1', () => bed.sleep(20)),
      })
      await worker.start()
      await bed.until(async () => (await states(bed, 'digest')).every((state) => state === 'succeeded'), 'both to run')
      const names = (await bed.runs({ job: 'digest' })).map(({ key }) => key?.name)
      expect(new Set(names)).toEqual(new Set(['job:digest:1']))
      expect(seen).toMatchObject({ executions: 2, mostOfOneKey: 1 })
    },
  )

  behaviour('Q14', '(fix) Locks are visible: listed by API with holder, token, age, expiry.', async (bed) => {
    const { opened, open } = gate()
    const [one, other] = [await bed.instance(), await bed.instance()]
    const job = one.job('sync', { exclusive: SKIP, run: () => opened })
    await one.start()
    await other.start()
    const before = await bed.now()
    const { run } = await job.enqueue('eu')
    await untilState(bed, run, 'running')
    const lock = await one.lock('report', { ttl: '10s' })
    const permits = [await one.lock('seats', { permits: 2 }), await other.lock('seats', { permits: 2 })]
    await bed.elapse(2_000)
    const now = await bed.now()
    // The list has all locks, including the keys of runs.
    const { items } = await other.locks.list()
    expect(items.map(({ name }) => name)).toEqual(['job:sync:"eu"', 'report', 'seats', 'seats'])
    expect(new Set(items.map(({ holder }) => holder)).size).toBe(4)
    for (const { holder, acquiredAt, expiresAt } of items) {
      expect(holder).not.toBe('')
      expect(acquiredAt).toBeGreaterThanOrEqual(before)
      expect(now - acquiredAt).toBeGreaterThanOrEqual(2_000)
      // Each has been held for longer than one lease, so it was renewed.
      expect(expiresAt).toBeGreaterThan(now)
    }
    const [key, report, ...seats] = items
    expect(key).toMatchObject({ run, instance: one.instance, token: (await one.runs.get(run))?.token })
    expect(report).toMatchObject({ token: lock?.token, instance: one.instance })
    expect(report?.expiresAt).toBeLessThanOrEqual(now + 10_000)
    expect(seats.map(({ token }) => token).sort()).toEqual(permits.map((permit) => permit?.token).sort())
    expect(seats.map(({ instance }) => instance).sort()).toEqual([one.instance, other.instance].sort())
    expect(await other.locks.inspect('report')).toEqual([report])
    open()
    await untilState(bed, run, 'succeeded')
    await lock?.release()
    expect((await other.locks.list()).items.map(({ name }) => name)).toEqual(['seats', 'seats'])
  })

  behaviour('Q14', 'Locks are visible: page by page, by prefix, and only while they are held.', async (bed) => {
    const belfry = await bed.instance()
    await belfry.start()
    for (const name of ['b/2', 'a/1', 'b/1', 'b/3']) await belfry.lock(name, { ttl: '1m' })
    await belfry.lock('b/short', { ttl: '500ms', renew: false })
    expect((await belfry.locks.list({ prefix: 'b/' })).items).toHaveLength(4)
    await bed.elapse(600)
    const names: string[] = []
    let after: string | undefined
    do {
      const page = await belfry.locks.list({ prefix: 'b/', limit: 2, ...(after === undefined ? {} : { after }) })
      names.push(...page.items.map(({ name }) => name))
      after = page.next
    } while (after !== undefined)
    expect(names).toEqual(['b/1', 'b/2', 'b/3'])
  })

  behaviour('Q15', '(fix) Limits above one: N permits per key (a semaphore), same guarantees.', async (bed) => {
    const { seen, during } = gauge()
    const job = await workers(bed, 3, {
      exclusive: { limit: 3, by: ['key'], whenBusy: 'wait' },
      run: ({ payload }) => during((payload as { key: string }).key, () => bed.sleep(40)),
    })
    await job.enqueueMany(Array.from({ length: 24 }, (_, at) => ({ payload: { key: at % 2 === 0 ? 'a' : 'b' } })))
    await untilOver(bed)
    expect(seen.executions).toBe(24)
    expect(seen.mostOfOneKey).toBe(3)
  })

  behaviour('Q15', 'A copy beyond the limit is skipped, and a permit that is freed is used again.', async (bed) => {
    const { opened, open } = gate()
    const job = await workers(bed, 2, {
      exclusive: { ...SKIP, limit: 2, by: ['key'], checkOnEnqueue: false },
      run: () => opened,
    })
    const first = await job.enqueue({ key: 'a' })
    const second = await job.enqueue({ key: 'a' })
    await untilState(bed, first.run, 'running')
    await untilState(bed, second.run, 'running')
    const third = await job.enqueue({ key: 'a' })
    await untilState(bed, third.run, 'skipped')
    expect(await bed.store.leases.inspect('job:sync:["a"]')).toHaveLength(2)
    open()
    await untilOver(bed)
    const fourth = await job.enqueue({ key: 'a' })
    await untilState(bed, fourth.run, 'succeeded')
  })

  behaviour(
    'Q16',
    "(fix) `whenBusy: 'wait'` serialises: every enqueued run executes, one at a time per key, oldest first.",
    async (bed) => {
      const { seen, during } = gauge()
      const order: unknown[] = []
      const job = await workers(bed, 3, {
        exclusive: { by: ['key'], whenBusy: 'wait' },
        run: ({ payload }) => {
          order.push((payload as { at: number }).at)
          return during('a', () => bed.sleep(5))
        },
      })
      for (let at = 0; at < 30; at += 1) await job.enqueue({ key: 'a', at })
      await untilOver(bed)
      expect(await states(bed)).toEqual(Array.from({ length: 30 }, () => 'succeeded'))
      expect(order).toEqual(Array.from({ length: 30 }, (_, at) => at))
      expect(seen.mostOfOneKey).toBe(1)
    },
  )

  behaviour('Q16', 'A younger run of the key does not overtake, whatever its priority.', async (bed) => {
    const order: unknown[] = []
    const options: JobOptions<Json> = {
      exclusive: { by: ['key'], whenBusy: 'wait' },
      run: ({ payload }) => void order.push((payload as { at: string }).at),
    }
    const early = await enqueuer(bed, options)
    await early.enqueue({ key: 'a', at: 'oldest' })
    await early.enqueue({ key: 'a', at: 'urgent' }, { priority: 10 })
    await early.enqueue({ key: 'a', at: 'youngest' }, { priority: 20 })
    await workers(bed, 1, options)
    await untilOver(bed)
    expect(order).toEqual(['oldest', 'urgent', 'youngest'])
  })

  behaviour('Q16', 'Other keys are not held up behind a busy one.', async (bed) => {
    const { opened, open } = gate()
    const job = await workers(
      bed,
      1,
      {
        exclusive: { by: ['key'], whenBusy: 'wait' },
        run: ({ payload }) => ((payload as { key: string }).key === 'busy' ? opened : null),
      },
      { concurrency: 2 },
    )
    const held = await job.enqueue({ key: 'busy' })
    await untilState(bed, held.run, 'running')
    await job.enqueueMany(Array.from({ length: 50 }, () => ({ payload: { key: 'busy' } })))
    const other = await job.enqueue({ key: 'free' })
    await untilState(bed, other.run, 'succeeded')
    const runs = await bed.runs({ job: 'sync' })
    expect(runs.filter(({ state }) => state === 'running').map(({ id }) => id)).toEqual([held.run])
    open()
    await untilOver(bed)
    expect(new Set(await states(bed))).toEqual(new Set(['succeeded']))
  })

  behaviour('Q16', 'A must-run run waits out the crash of the one before it.', async (bed) => {
    const first = await bed.instance()
    const second = await bed.instance({ roles: ['tick'] })
    const { opened, open } = gate()
    const ran: number[] = []
    const options: JobOptions<Json> = {
      exclusive: { by: ['key'], whenBusy: 'wait' },
      run: async ({ payload }) => {
        ran.push((payload as { at: number }).at)
        if (ran.length === 1) await opened
      },
    }
    const job = first.job('sync', options)
    await first.start()
    await second.start()
    const { run } = await job.enqueue({ key: 'a', at: 0 })
    await untilState(bed, run, 'running')
    await job.enqueue({ key: 'a', at: 1 })
    bed.crash(first)
    const third = await bed.instance()
    third.job('sync', options)
    await third.start()
    await untilOver(bed)
    open()
    // The run that was taken over is the older one, so it comes first.
    expect(ran).toEqual([0, 0, 1])
    expect(await states(bed)).toEqual(['succeeded', 'succeeded'])
  })

  behaviour(
    'Q17',
    '(fix) No false sharing: distinct keys never collide (que-locks hashes to 31 bits).',
    async (bed) => {
      const job = await enqueuer(bed, { exclusive: SKIP })
      const long = 'x'.repeat(400)
      const lookalikes: Json[] = [
        ...[null, 'null', 1, '1', [1], '[1]', ['1'], { a: 1 }, { a: '1' }, [], {}, '', true, 'true', [null], [[]]],
        ...[{ a: { b: 1 } }, { 'a.b': 1 }, { a: 1, b: 2 }, [{ a: 1 }, { b: 2 }], 'é', 'e\u0301', 'a:b', ['a', 'b']],
        ...[`${long}1`, `${long}2`, { long: `${long}1` }, { long: `${long}2` }, [long, 1], [long, '1']],
      ]
      const many: Json[] = Array.from({ length: 1_000 }, (_, at) => ({ user: at, padding: at % 2 === 0 ? long : '' }))
      const payloads = [...lookalikes, ...many]
      const enqueued = await job.enqueueMany(payloads.map((payload) => ({ payload })))
      expect(enqueued.map(({ outcome }) => outcome)).toEqual(payloads.map(() => 'enqueued'))
      const names = await Promise.all(enqueued.map(async ({ run }) => (await bed.store.runs.get(run))?.key?.name))
      expect(new Set(names).size).toBe(payloads.length)
      expect(names.every((name) => name !== undefined && name.length <= 255)).toBe(true)
      // Equal keys still match, however long they are.
      expect((await job.enqueue([long, 1])).outcome).toBe('busy')
    },
  )

  behaviour('Q17', 'Jobs with the same arguments do not share a key.', async (bed) => {
    const belfry = await bed.instance({ roles: [] })
    const jobs = ['a', 'a:1', 'a:"x"', 'b'].map((name) => belfry.job(name, { exclusive: SKIP, run: () => null }))
    await belfry.start()
    for (const job of jobs) {
      for (const payload of ['x', 1, '1:"x"', null]) expect((await job.enqueue(payload)).outcome).toBe('enqueued')
    }
  })

  behaviour(
    'Q18',
    'An exclusive run costs at most one more store call at enqueue and two at execution.',
    async (bed) => {
      const { wrap, ofWork } = countingStore()
      const belfry = await bed.instance({ wrap })
      const job = belfry.job('exclusive', { exclusive: true, run: () => null })
      await belfry.start()
      const work = () => ofWork().filter((call) => call !== 'runs.list')
      for (let round = 0; round < 5; round += 1) {
        const before = work().length
        const { run } = await job.enqueue('same')
        expect(work().length - before).toBeLessThanOrEqual(2)
        await untilState(bed, run, 'succeeded')
        // A plain run takes an enqueue, a claim and a settle.
        expect(work().length - before).toBeLessThanOrEqual(3 + 3)
      }
    },
  )

  behaviour(
    'Q19',
    "(fix) Several jobs can share one lock: `exclusive: { name: 'remote-api', limit: 2 }`.",
    async (bed) => {
      const { seen, during } = gauge()
      const jobs: AnyJob[] = []
      for (let count = 0; count < 2; count += 1) {
        const belfry = await bed.instance()
        for (const name of ['charge', 'refund', 'report']) {
          const job = belfry.job(name, {
            exclusive: { name: 'remote-api', limit: 2, whenBusy: 'wait' },
            run: () => during('remote-api', () => bed.sleep(20)),
          })
          jobs.push(job)
        }
        await belfry.start()
      }
      for (let round = 0; round < 3; round += 1) await Promise.all(jobs.map((job) => job.enqueue({ round })))
      for (const name of ['charge', 'refund', 'report']) await untilOver(bed, name)
      expect(seen).toEqual({ mostOfOneKey: 2, mostTogether: 2, executions: 18 })
    },
  )

  behaviour('Q19', 'A plain lock with the name that jobs share takes one of their permits.', async (bed) => {
    const belfry = await bed.instance()
    const job = belfry.job('charge', { exclusive: { name: 'remote-api', whenBusy: 'wait' }, run: () => null })
    await belfry.start()
    const lock = await belfry.lock('remote-api', { ttl: '2s' })
    const { run } = await job.enqueue(1)
    await bed.until(async () => (await bed.store.runs.get(run))?.waitsFor === 'key', 'the run to wait for the lock')
    await lock?.release()
    await untilState(bed, run, 'succeeded')
  })
})
