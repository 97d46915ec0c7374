/** Behaviours of a Redis lock with a heartbeat. "(fix)" marks what such a lock documents as its limits. */
import { expect } from 'vitest'
import { type Belfry, createBelfry, type JobOptions, type Json, type Store } from '../../src/index.js'
import { behaviours, type TestBed } from './test-bed.js'

/** Handlers wait until the test opens the gate. */
function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

async function started(bed: TestBed, options: Parameters<TestBed['instance']>[0] = {}): Promise<Belfry> {
  const belfry = await bed.instance(options)
  await belfry.start()
  return belfry
}

async function worker(bed: TestBed, options: JobOptions<Json>, instance: Parameters<TestBed['instance']>[0] = {}) {
  const belfry = await bed.instance(instance)
  const job = belfry.job('report', options)
  await belfry.start()
  return { belfry, job }
}

async function untilState(bed: TestBed, run: string, state: string): Promise<void> {
  await bed.until(async () => (await bed.store.runs.get(run))?.state === state, `run ${run} to be ${state}`)
}

/** Calls the watcher before every store call. If the watcher throws, the call fails without reaching the store. */
function watched(store: Store, watch: (operation: string) => void | Promise<void>): Store {
  const part = <Part extends object>(target: Part, area: string): Part =>
    new Proxy(target, {
      get(_, name) {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        return async (...args: unknown[]) => {
          await watch(`${area}.${String(name)}`)
          return Reflect.apply(member, target, args) as unknown
        }
      },
    })
  const call = async <T>(operation: string, pass: () => Promise<T>): Promise<T> => {
    await watch(operation)
    return pass()
  }
  return {
    supports: store.supports,
    schedules: part(store.schedules, 'schedules'),
    runs: part(store.runs, 'runs'),
    leases: part(store.leases, 'leases'),
    instances: part(store.instances, 'instances'),
    records: part(store.records, 'records'),
    open: () => store.open(),
    close: () => store.close(),
    now: () => call('now', () => store.now()),
    subscribe: (listener) => store.subscribe(listener),
    freeze: (note) => call('freeze', () => store.freeze(note)),
    thaw: () => call('thaw', () => store.thaw()),
    frozen: () => call('frozen', () => store.frozen()),
  }
}

/** Retries until the lock is acquired. */
async function untilLocked(bed: TestBed, belfry: Belfry, name: string, ttl: string) {
  let lock = await belfry.lock(name, { ttl })
  await bed.until(async () => {
    lock ??= await belfry.lock(name, { ttl })
    return lock !== undefined
  }, `${name} to be free`)
  if (lock === undefined) throw new Error('unreachable')
  return lock
}

behaviours('Redis lock with heartbeat', (behaviour) => {
  behaviour('R1', 'Acquire is set-if-absent with a unique token and a TTL.', async (bed) => {
    const instances = await Promise.all(Array.from({ length: 4 }, () => started(bed)))
    const tokens: number[] = []
    const holders = new Set<string>()
    for (let round = 0; round < 5; round += 1) {
      const asked = instances.flatMap((belfry) => [1, 2, 3].map(() => belfry.lock('refresh', { ttl: '5s' })))
      const locks = (await Promise.all(asked)).filter((lock) => lock !== undefined)
      expect(locks).toHaveLength(1)
      const [lease, ...others] = await bed.store.leases.inspect('refresh')
      expect(others).toEqual([])
      expect(lease).toMatchObject({ token: locks[0]?.token })
      expect((lease?.expiresAt ?? 0) - (lease?.acquiredAt ?? 0)).toBeCloseTo(5_000, -1)
      holders.add(lease?.holder ?? '')
      tokens.push(locks[0]?.token ?? 0)
      await locks[0]?.release()
    }
    expect(holders.size).toBe(5)
    expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other))
  })

  behaviour('R1', 'A lock that is neither renewed nor released is free after its TTL.', async (bed) => {
    const [first, second] = [await started(bed), await started(bed)]
    const lock = await first.lock('refresh', { ttl: '500ms', renew: false })
    expect(lock).toBeDefined()
    expect(await second.lock('refresh')).toBeUndefined()
    await bed.elapse(600)
    const successor = await second.lock('refresh')
    expect(successor?.token).toBeGreaterThan(lock?.token ?? Number.POSITIVE_INFINITY)
  })

  behaviour(
    'R2',
    'Release and extend compare the token: a caller that does not hold the lock changes nothing.',
    async (bed) => {
      const { leases } = bed.store
      const request = { name: 'refresh', ttlMs: 5_000, permits: 1, floor: 0 }
      const held = await leases.acquire({ ...request, holder: 'a' })
      if (!held.acquired) throw new Error('the first must get it')
      const { token, expiresAt } = held.lease
      const renewal = { name: 'refresh', ttlMs: 60_000 }
      expect(
        await leases.renew([
          { ...renewal, holder: 'b', token },
          { ...renewal, holder: 'a', token: token - 1 },
          { ...renewal, holder: 'a', token: token + 1 },
          { ...renewal, name: 'other', holder: 'a', token },
        ]),
      ).toEqual([undefined, undefined, undefined, undefined])
      expect(await leases.release({ name: 'refresh', holder: 'b' })).toBe(false)
      expect(await leases.inspect('refresh')).toMatchObject([{ holder: 'a', token, expiresAt }])
      const releases = await Promise.all([1, 2, 3].map(() => leases.release({ name: 'refresh', holder: 'a' })))
      expect(releases.filter((released) => released)).toHaveLength(1)
    },
  )

  behaviour(
    'R2',
    'Release and extend are atomic: of an extension and a takeover at the same time one wins.',
    async (bed) => {
      const { leases } = bed.store
      for (let round = 0; round < 10; round += 1) {
        const request = { name: `refresh/${round}`, ttlMs: 50, permits: 1, floor: 0 }
        const { name } = request
        const held = await leases.acquire({ ...request, holder: 'a' })
        if (!held.acquired) throw new Error('the first must get it')
        const { token } = held.lease
        await bed.elapse(80)
        const extend = () =>
          leases.renew([{ name, holder: 'a', token, ttlMs: 5_000 }]).then(([lease]) => lease !== undefined)
        const take = () => leases.acquire({ ...request, ttlMs: 5_000, holder: 'b' }).then(({ acquired }) => acquired)
        const [one, other] = await Promise.all(round % 2 === 0 ? [extend(), take()] : [take(), extend()])
        expect([one, other].filter((won) => won)).toHaveLength(1)
        const taken = round % 2 === 0 ? other : one
        // The first holder's release frees the lock only if its extension has won. It never affects the other holder.
        expect(await leases.release({ name, holder: 'a' })).toBe(!taken)
        expect((await leases.inspect(name)).map(({ holder }) => holder)).toEqual(taken ? ['b'] : [])
      }
    },
  )

  behaviour(
    'R3',
    'An expired holder can neither release nor extend its successor’s lock (the 0:00–0:12 timeline, a minute as 100 ms).',
    async (bed) => {
      const [a, b, c] = [await started(bed), await started(bed), await started(bed)]
      // [0:00] A acquires the lock; then its process stops for longer than the TTL.
      const lockA = await a.lock('refresh', { ttl: '1s' })
      if (lockA === undefined) throw new Error('A must get it')
      bed.hold(a)
      // [0:10] The TTL has passed. [0:11] B acquires the lock.
      await bed.elapse(1_000)
      const lockB = await untilLocked(bed, b, 'refresh', '5s')
      const before = await bed.store.leases.inspect('refresh')
      // [0:12] A continues as if nothing had happened.
      bed.resume(a)
      const [extended, released] = await Promise.all([lockA.extend('1m'), lockA.release()])
      expect([extended, released]).toEqual([false, false])
      await bed.until(() => lockA.signal.aborted, 'A to be told')
      expect(lockA.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
      expect(before).toMatchObject([{ token: lockB.token }])
      const [lease] = await bed.store.leases.inspect('refresh')
      expect(lease).toMatchObject({ token: lockB.token, holder: before[0]?.holder })
      expect(lockB.token).toBeGreaterThan(lockA.token)
      expect(lockB.signal.aborted).toBe(false)
      expect(await c.lock('refresh')).toBeUndefined()
    },
  )

  behaviour(
    'R4',
    'Renewals come at less than TTL/3 (default TTL/4), so two attempts fit before expiry.',
    async (bed) => {
      const renewals: number[] = []
      let refused = 0
      const belfry = await started(bed, {
        wrap: (store) =>
          watched(store, async (operation) => {
            if (operation !== 'leases.renew') return
            renewals.push(await bed.now())
            if (refused === 0) return
            refused -= 1
            throw new Error('connection reset')
          }),
      })
      const lock = await belfry.lock('refresh', { ttl: '2s' })
      const acquiredAt = (await bed.store.leases.inspect('refresh'))[0]?.acquiredAt ?? 0
      await bed.until(() => renewals.length >= 1, 'the first renewal')
      expect((renewals[0] ?? 0) - acquiredAt).toBeLessThan(2_000 / 3)
      // After two failed renewals in a row, the third one still comes before the lease expires.
      refused = 2
      await bed.until(() => renewals.length >= 4, 'two failed renewals and one more')
      await bed.elapse(1_000)
      expect(lock?.signal.aborted).toBe(false)
      expect(await bed.store.leases.inspect('refresh')).toMatchObject([{ token: lock?.token }])
    },
  )

  behaviour('R4', 'Renewals run only while work runs. An instance’s presence beat is separate.', async (bed) => {
    let [renewals, beats] = [0, 0]
    const belfry = await started(bed, {
      wrap: (store) =>
        watched(store, (operation) => {
          if (operation === 'leases.renew') renewals += 1
          if (operation === 'instances.beat') beats += 1
        }),
    })
    await bed.elapse(1_000)
    expect(renewals).toBe(0)
    expect(beats).toBeGreaterThan(0)
    const { opened, open } = gate()
    const work = belfry.withLock('refresh', () => opened, { ttl: '400ms' })
    await bed.until(() => renewals >= 3, 'renewals during the work')
    open()
    await bed.settled(work)
    const [renewalsAfter, beatsAfter] = [renewals, beats]
    await bed.elapse(1_000)
    expect(renewals).toBe(renewalsAfter)
    expect(beats).toBeGreaterThan(beatsAfter)
  })

  behaviour('R5', 'A heartbeat set by hand to more than TTL/3 is a configuration error.', async (bed) => {
    const belfry = await started(bed)
    const refused = belfry.lock('refresh', { ttl: '3s', heartbeat: '1001ms' })
    await expect(refused).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(refused).rejects.toThrow(/"refresh".*1001 ms.*3000 ms.*at most a third \(1000 ms\)/)
    expect(await bed.store.leases.inspect('refresh')).toEqual([])
    expect(await belfry.lock('refresh', { ttl: '3s', heartbeat: '1s' })).toBeDefined()
  })

  behaviour(
    'R5',
    'A heartbeat set by hand to more than TTL/3 is a configuration error. (an instance’s own)',
    async (bed) => {
      const refused = bed.instance({ lease: '3s', heartbeat: '1001ms' })
      await expect(refused).rejects.toMatchObject({ code: 'OPTION_INVALID' })
      await expect(refused).rejects.toThrow(/createBelfry.*1001 ms.*3000 ms.*at most a third \(1000 ms\)/)
      expect(await bed.instance({ lease: '3s', heartbeat: '1s' })).toBeDefined()
    },
  )

  behaviour('R5', 'With `renew: false`, a timeout longer than the TTL is a configuration error, too.', async (bed) => {
    const belfry = await started(bed)
    const refused = belfry.lock('refresh', { ttl: '1s', renew: false, timeout: '2s' })
    await expect(refused).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(refused).rejects.toThrow(/"refresh".*not renewed.*timeout is longer than its ttl of 1000 ms/)
    let ran = false
    const work = belfry.withLock('refresh', () => (ran = true), { ttl: '1s', renew: false, timeout: '2s' })
    await expect(work).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(ran).toBe(false)
    expect(await bed.store.leases.inspect('refresh')).toEqual([])
    expect(await belfry.lock('refresh', { ttl: '2s', renew: false, timeout: '2s' })).toBeDefined()
  })

  behaviour('R6', 'A crash leads to takeover at TTL, with no operator: a run.', async (bed) => {
    const { opened, open } = gate()
    const ran: string[] = []
    const first = await worker(bed, {
      exclusive: true,
      run: async () => {
        ran.push('first')
        await opened
      },
    })
    const { run } = await first.job.enqueue({ repository: 1 })
    await untilState(bed, run, 'running')
    await worker(bed, { exclusive: true, run: () => ran.push('second') })
    const before = await bed.store.runs.get(run)
    bed.crash(first.belfry)
    const crashedAt = await bed.now()
    await untilState(bed, run, 'succeeded')
    open()
    const after = await bed.store.runs.get(run)
    expect(ran).toEqual(['first', 'second'])
    expect(after).toMatchObject({ attempt: 2, takeovers: 1, failures: 0 })
    expect(after?.token).toBeGreaterThan(before?.token ?? Number.POSITIVE_INFINITY)
    // The takeover waits until the one-second lease has expired, and comes at most 1.5 leases after the crash, plus a
    // margin for the test's own steps.
    const tookMs = (after?.startedAt ?? 0) - crashedAt
    expect(tookMs).toBeGreaterThan(500)
    expect(tookMs).toBeLessThanOrEqual(2_000)
  })

  behaviour('R6', 'A crash leads to takeover at TTL, with no operator: a lock.', async (bed) => {
    const [a, b] = [await started(bed), await started(bed)]
    const lock = await a.lock('refresh', { ttl: '1s' })
    const waiting = b.lock('refresh', { wait: '5s' })
    bed.crash(a)
    const crashedAt = await bed.now()
    const successor = await bed.settled(waiting)
    expect(successor?.token).toBeGreaterThan(lock?.token ?? Number.POSITIVE_INFINITY)
    expect((await bed.now()) - crashedAt).toBeLessThanOrEqual(2_000)
  })

  behaviour('R7', 'Blue–green: two releases overlap and every tick still runs once.', async (bed) => {
    const ran = new Map<number, string[]>()
    const release = async (name: string) => {
      const belfry = await bed.instance({ app: 'collector', release: name })
      belfry.job('refresh', {
        exclusive: true,
        run: ({ tick }) => void ran.set(tick.getTime(), [...(ran.get(tick.getTime()) ?? []), name]),
      })
      belfry.schedule('refresh', { every: '1s', job: 'refresh', payload: { greeting: name } })
      await belfry.start()
      return belfry
    }
    const blue = await release('1.0')
    await bed.until(() => ran.size >= 1, 'blue to run a tick')
    const anchored = (await bed.store.schedules.get('refresh'))?.anchor
    await release('1.1')
    await bed.until(() => ran.size >= 3, 'two ticks of the overlap')
    await bed.settled(blue.stop())
    await bed.until(() => ran.size >= 5, 'green to continue alone')
    const ticks = [...ran.keys()].sort((one, other) => one - other)
    expect([...ran.values()].map((by) => by.length)).toEqual(ticks.map(() => 1))
    // The deploy neither dropped nor moved a tick: they follow blue's anchor second by second.
    expect(ticks).toEqual(ticks.map((_, at) => (anchored ?? 0) + 1_000 * (at + 1)))
    expect(ran.get(ticks.at(-1) ?? 0)).toEqual(['1.1'])
    const runs = await bed.runs({ schedule: 'refresh' })
    expect(new Set(runs.map(({ tick }) => tick)).size).toBe(runs.length)
    // The schedule has had the newer release's payload since that release started.
    expect((await bed.store.schedules.get('refresh'))?.definition.payload).toEqual({ greeting: '1.1' })
  })

  behaviour(
    'R8',
    'Store down: nothing runs, every instance keeps trying and says so once; one warning, one recovery line.',
    async (bed) => {
      let down = false
      let ran = 0
      const wrap = (store: Store) =>
        watched(store, () => {
          if (down) throw new Error('connect ECONNREFUSED')
        })
      const instances: Belfry[] = []
      for (let count = 0; count < 2; count += 1) {
        const belfry = await bed.instance({ wrap })
        belfry.job('refresh', {
          run: () => {
            ran += 1
          },
        })
        belfry.schedule('refresh', { every: '1s', job: 'refresh' })
        await belfry.start()
        instances.push(belfry)
      }
      await bed.until(() => ran >= 1, 'the first tick')
      down = true
      await bed.elapse(100)
      const before = ran
      await bed.elapse(2_400)
      expect(ran).toBe(before)
      for (const belfry of instances)
        expect(levels(bed, belfry, 'warn', 'error')).toEqual([expect.stringMatching(/^store unreachable/)])
      down = false
      await bed.until(() => ran > before, 'ticks to continue by themselves')
      for (const belfry of instances) {
        await bed.until(() => recoveries(bed, belfry) > 0, 'the recovery line')
        expect(levels(bed, belfry, 'warn', 'error')).toHaveLength(1)
        expect(recoveries(bed, belfry)).toBe(1)
      }
    },
  )

  behaviour('R8', 'When the store is back, missed ticks follow the missed policy, by themselves.', async (bed) => {
    let down = false
    const wrap = (store: Store) =>
      watched(store, () => {
        if (down) throw new Error('connect ECONNREFUSED')
      })
    const ran = new Map<string, number[]>([
      ['all', []],
      ['latest', []],
      ['skip', []],
    ])
    const belfry = await bed.instance({ wrap, grace: '300ms' })
    belfry.job('refresh', {
      run: ({ run, tick }) => void ran.get(run.schedule ?? '')?.push(tick.getTime()),
    })
    for (const missed of ['all', 'latest', 'skip'] as const) {
      belfry.schedule(missed, { every: '1s', job: 'refresh', missed })
    }
    await belfry.start()
    await bed.until(() => [...ran.values()].every((ticks) => ticks.length >= 1), 'the first ticks')
    down = true
    const downAt = await bed.now()
    await bed.elapse(3_500)
    down = false
    const upAt = await bed.now()
    await bed.until(
      () => [...ran.values()].every((ticks) => (ticks.at(-1) ?? 0) > upAt),
      'all to be back on time',
      20_000,
    )
    const missedTicks = async (schedule: string) => {
      const line = (await bed.store.schedules.get(schedule))?.anchor ?? 0
      const ticks: number[] = []
      for (let tick = line + 1_000; tick <= upAt; tick += 1_000) if (tick > downAt) ticks.push(tick)
      return ticks
    }
    const reasons = async (schedule: string, ticks: readonly number[]) =>
      Promise.all(ticks.map(async (tick) => (await belfry.schedules.explain(schedule, new Date(tick))).reason))
    const all = await missedTicks('all')
    expect(all.length).toBeGreaterThanOrEqual(3)
    expect(ran.get('all')).toEqual(expect.arrayContaining(all))
    const latest = await missedTicks('latest')
    // The policy `latest` drops all missed ticks but the newest. More than one may still have run, if the last of them
    // became due when the store answered again.
    const droppedLatest = latest.filter((tick) => !ran.get('latest')?.includes(tick))
    expect(droppedLatest.length).toBeGreaterThanOrEqual(latest.length - 1)
    expect(new Set(await reasons('latest', droppedLatest))).toEqual(new Set(['missed']))
    expect(droppedLatest).toEqual(latest.slice(0, droppedLatest.length))
    const tooLate = (await missedTicks('skip')).filter((tick) => tick < upAt - 300)
    expect(tooLate.filter((tick) => ran.get('skip')?.includes(tick))).toEqual([])
    for (const reason of await reasons('skip', tooLate)) expect(['missed', 'deadline']).toContain(reason)
    for (const ticks of ran.values()) expect(new Set(ticks).size).toBe(ticks.length)
  })

  behaviour('R8', '"Held elsewhere" is debug level.', async (bed) => {
    const [a, b] = [await started(bed), await started(bed)]
    await a.lock('refresh', { ttl: '2s' })
    expect(await b.lock('refresh')).toBeUndefined()
    expect(await bed.settled(b.lock('refresh', { wait: '200ms' }))).toBeUndefined()
    const lines = bed.logs(b).filter(({ message }) => /held elsewhere/.test(message))
    expect(lines.map(({ level }) => level)).toEqual(['debug', 'debug'])
    expect(lines[0]?.fields).toMatchObject({ lock: 'refresh' })
    expect([...levels(bed, a, 'warn', 'error'), ...levels(bed, b, 'warn', 'error')]).toEqual([])
  })

  behaviour('R8', 'Losing runs to another instance, or to a busy key, is no warning either.', async (bed) => {
    const { opened, open } = gate()
    const options: JobOptions<Json> = { exclusive: { whenBusy: 'skip', checkOnEnqueue: false }, run: () => opened }
    const [a, b] = [await worker(bed, options), await worker(bed, options)]
    const { run } = await a.job.enqueue(1)
    await untilState(bed, run, 'running')
    const copies = await Promise.all([a.job.enqueue(1), b.job.enqueue(1)])
    for (const copy of copies) await untilState(bed, copy.run, 'skipped')
    open()
    await untilState(bed, run, 'succeeded')
    for (const { belfry } of [a, b]) expect(levels(bed, belfry, 'info', 'warn', 'error')).toEqual([])
  })

  behaviour('R9', 'Keys are namespaced; lock state is inspectable.', async (bed) => {
    const { opened, open } = gate()
    const { belfry, job } = await worker(bed, { exclusive: true, run: () => opened })
    const { run } = await job.enqueue({ repository: 1 })
    await untilState(bed, run, 'running')
    // A lock may have the name of the job or of its payload, because the job's key is another name.
    const lock = await belfry.lock('report', { ttl: '5s' })
    expect(lock).toBeDefined()
    expect(await belfry.lock('{"repository":1}', { ttl: '5s' })).toBeDefined()
    const { items } = await belfry.locks.list()
    expect(items.map(({ name }) => name)).toEqual(['job:report:{"repository":1}', 'report', '{"repository":1}'])
    const [key] = await belfry.locks.inspect('job:report:{"repository":1}')
    const claimed = await belfry.runs.get(run)
    expect(key).toMatchObject({ run, instance: belfry.instance, token: claimed?.token })
    expect((await belfry.locks.list({ prefix: 'job:' })).items.map(({ run: of }) => of)).toEqual([run])
    expect(await belfry.locks.inspect('report')).toMatchObject([{ token: lock?.token, instance: belfry.instance }])
    open()
    await untilState(bed, run, 'succeeded')
    expect((await belfry.locks.list({ prefix: 'job:' })).items).toEqual([])
  })

  behaviour('R9', 'Graceful shutdown releases locks.', async (bed) => {
    const { belfry, job } = await worker(bed, {
      exclusive: true,
      run: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
    })
    const { run } = await job.enqueue({ repository: 1 })
    await untilState(bed, run, 'running')
    await belfry.lock('refresh', { ttl: '1m' })
    await belfry.lock('permits', { ttl: '1m', permits: 3 })
    await bed.settled(belfry.stop({ grace: 0 }))
    expect((await bed.store.leases.list({ limit: 10 })).items).toEqual([])
    const other = await started(bed)
    expect(await other.lock('refresh')).toBeDefined()
  })

  behaviour(
    'R10',
    '(fix) A pause longer than the TTL cannot lead to two effects: the stale attempt is refused at settle.',
    async (bed) => {
      const { opened, open } = gate()
      const stale: string[] = []
      const results: unknown[] = []
      const first = await worker(bed, {
        exclusive: true,
        run: async ({ signal }) => {
          await opened
          results.push(signal.aborted)
          return 'late'
        },
      })
      first.belfry.on('run:stale', ({ run }) => stale.push(run.id))
      const { run } = await first.job.enqueue({ repository: 1 })
      await untilState(bed, run, 'running')
      const before = await bed.store.runs.get(run)
      bed.hold(first.belfry)
      await worker(bed, { exclusive: true, run: () => 'in time' })
      await untilState(bed, run, 'succeeded')
      const after = await bed.store.runs.get(run)
      open()
      bed.resume(first.belfry)
      await bed.until(() => stale.length > 0, 'the first to be told')
      expect(await bed.store.runs.get(run)).toEqual(after)
      expect(after).toMatchObject({ result: 'in time', attempt: 2 })
      const token = before?.token ?? 0
      expect(after?.token).toBeGreaterThan(token)
      // The store refuses every outcome of the first attempt, because its token is stale.
      for (const outcome of [
        { kind: 'succeeded', result: 'late' },
        { kind: 'released' },
        { kind: 'cancelled' },
      ] as const) {
        expect(await bed.store.runs.settle([{ run, token, outcome }])).toEqual(['stale'])
      }
      expect(await bed.store.runs.get(run)).toEqual(after)
    },
  )

  behaviour(
    'R10',
    'The stale attempt is refused while its successor is at work, and takes no key from it.',
    async (bed) => {
      const [one, other] = [gate(), gate()]
      const first = await worker(bed, { exclusive: true, run: () => one.opened })
      const { run } = await first.job.enqueue({ repository: 1 })
      await untilState(bed, run, 'running')
      const token = (await bed.store.runs.get(run))?.token ?? 0
      bed.hold(first.belfry)
      await worker(bed, { exclusive: true, run: () => other.opened })
      await bed.until(async () => (await bed.store.runs.get(run))?.attempt === 2, 'the takeover')
      one.open()
      bed.resume(first.belfry)
      expect(await bed.store.runs.settle([{ run, token, outcome: { kind: 'succeeded' } }])).toEqual(['stale'])
      await bed.elapse(300)
      const [key] = await bed.store.leases.inspect('job:report:{"repository":1}')
      expect(key?.token).toBeGreaterThan(token)
      expect(await bed.store.runs.get(run)).toMatchObject({ state: 'running', attempt: 2 })
      other.open()
      await untilState(bed, run, 'succeeded')
    },
  )

  behaviour('R10', 'The stale attempt’s token is refused inside `transaction()`.', async (bed) => {
    const { opened, open } = gate()
    const refusals: unknown[] = []
    const first = await worker(bed, {
      exclusive: true,
      run: async ({ transaction }) => {
        await opened
        await transaction(() => 'late').catch((error) => {
          refusals.push(error)
          throw error
        })
      },
    })
    const { run } = await first.job.enqueue({ repository: 1 })
    await untilState(bed, run, 'running')
    // The store shows the run as running before its answer has reached the instance; 20 ms later the handler runs.
    await bed.elapse(20)
    bed.hold(first.belfry)
    await worker(bed, { exclusive: true, run: () => 'in time' })
    await untilState(bed, run, 'succeeded')
    open()
    bed.resume(first.belfry)
    await bed.until(() => refusals.length > 0, 'the transaction to be refused')
    // STALE: the store refused the commit. LEASE_LOST: the process knew of the loss and did not ask the store.
    const codes = bed.store.supports.transactions ? ['STALE', 'LEASE_LOST'] : ['UNSUPPORTED']
    expect(refusals).toMatchObject([{ code: expect.toBeOneOf(codes) }])
    expect(await bed.store.runs.get(run)).toMatchObject({ result: 'in time' })
  })

  behaviour('R11', '(fix) Takeover takes seconds by default, not ten minutes.', async (bed) => {
    const { store } = bed
    // An instance without options uses the defaults.
    const belfry = createBelfry({ store: { ...watched(store, () => {}), close: async () => {} } })
    await belfry.start()
    await bed.until(async () => (await belfry.instances()).length === 1, 'the instance to join')
    const [instance] = await belfry.instances()
    expect((instance?.expiresAt ?? 0) - (instance?.joinedAt ?? 0)).toBeCloseTo(15_000, -1)
    await belfry.lock('refresh')
    const [lease] = await belfry.locks.inspect('refresh')
    expect((lease?.expiresAt ?? 0) - (lease?.acquiredAt ?? 0)).toBeCloseTo(15_000, -1)
    await belfry.stop()
  })
})

function levels(bed: TestBed, belfry: Belfry, ...wanted: readonly string[]): string[] {
  return bed
    .logs(belfry)
    .filter(({ level }) => wanted.includes(level))
    .map(({ message }) => message)
}

function recoveries(bed: TestBed, belfry: Belfry): number {
  return levels(bed, belfry, 'info').filter((message) => message === 'store answers again').length
}
