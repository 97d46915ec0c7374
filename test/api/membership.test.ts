/** An instance's part in the cluster: roles, jobs, freezing, takeovers, signals. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Belfry, Logger, ScheduleFields, ScheduleInput } from '../../src/index.js'
import { createTestBelfry, type TestOptions } from '../../src/testing/index.js'

const NOW = '2026-01-01T00:00:00Z'

/** An instance with two jobs and an hourly schedule for each. `ran` lists the jobs that it has run. */
function member(
  kit: ReturnType<typeof createTestBelfry>,
  options: Omit<TestOptions, 'now'>,
  schedule: Partial<ScheduleFields> = {},
) {
  const belfry = kit.instance(options)
  const ran: string[] = []
  for (const name of ['mail', 'report']) {
    belfry.job(name, { run: () => void ran.push(name) })
    belfry.schedule(`${name}/hourly`, { every: '1h', job: name, ...schedule } as ScheduleInput)
  }
  return { belfry, ran }
}

describe('roles', () => {
  it('none: it enqueues and reads, records no tick, runs nothing and is not a member', async () => {
    const kit = createTestBelfry({ now: NOW })
    const { belfry, ran } = member(kit, { roles: [] })
    await belfry.start()
    await belfry.schedules.trigger('mail/hourly')
    await kit.advance('5h')
    expect(ran).toEqual([])
    expect(await kit.runs('report/hourly')).toEqual([])
    expect((await kit.runs('mail/hourly')).map(({ state }) => state)).toEqual(['ready'])
    expect(await belfry.instances()).toEqual([])
    await belfry.stop()
  })

  it('tick: it records ticks and runs nothing', async () => {
    const kit = createTestBelfry({ now: NOW })
    const ticker = member(kit, { roles: ['tick'] }, { missed: 'all' })
    await ticker.belfry.start()
    await kit.advance('2h30m')
    expect((await kit.runs('mail/hourly')).map(({ state }) => state)).toEqual(['ready', 'ready'])
    const runner = member(kit, { roles: ['run'] })
    await runner.belfry.start()
    await kit.advance('1m')
    expect([ticker.ran, runner.ran.sort()]).toEqual([[], ['mail', 'mail', 'report', 'report']])
  })

  it('run: it runs recorded ticks and records none', async () => {
    const kit = createTestBelfry({ now: NOW })
    const { belfry, ran } = member(kit, { roles: ['run'] })
    await belfry.start()
    await kit.advance('5h')
    expect(ran).toEqual([])
    expect(await kit.runs('mail/hourly')).toEqual([])
    await belfry.schedules.trigger('mail/hourly')
    await kit.advance('1s')
    expect(ran).toEqual(['mail'])
  })

  it('jobs: it runs only the named jobs, and enqueues any', async () => {
    const kit = createTestBelfry({ now: NOW })
    const mailer = member(kit, { jobs: ['mail'] })
    const reporter = member(kit, { jobs: ['report'] })
    await mailer.belfry.start()
    await reporter.belfry.start()
    await kit.advance('3h1m')
    expect(new Set(mailer.ran)).toEqual(new Set(['mail']))
    expect(new Set(reporter.ran)).toEqual(new Set(['report']))
    expect([mailer.ran.length, reporter.ran.length]).toEqual([3, 3])
    const [first] = await mailer.belfry.instances()
    expect(first?.jobs).toEqual([{ name: 'mail' }])
  })

  it('are listed with host, process, app, release and last heartbeat', async () => {
    const kit = createTestBelfry({ now: NOW })
    const { belfry } = member(kit, { app: 'shop', release: '7' })
    await belfry.start()
    await kit.advance('1s')
    expect(await belfry.instances()).toMatchObject([
      { id: belfry.instance, app: 'shop', release: '7', pid: process.pid, joinedAt: Date.parse(NOW) },
    ])
  })
})

describe('freeze', () => {
  it('starts nothing in the whole store while ticks are still recorded; thaw starts what is due', async () => {
    const kit = createTestBelfry({ now: NOW })
    const all = { missed: 'all' } as const
    const [one, other] = [member(kit, {}, all), member(kit, {}, all)]
    await one.belfry.start()
    await other.belfry.start()
    await one.belfry.freeze('moving the database')
    expect(await other.belfry.frozen()).toEqual({ at: Date.parse(NOW), note: 'moving the database' })
    await kit.advance('3h30m')
    expect([...one.ran, ...other.ran]).toEqual([])
    expect((await kit.runs('mail/hourly')).map(({ state }) => state)).toEqual(['ready', 'ready', 'ready'])
    await other.belfry.thaw()
    await kit.advance('1m')
    expect(await one.belfry.frozen()).toBeUndefined()
    expect([...one.ran, ...other.ran]).toHaveLength(6)
  })

  it('leaves running attempts alone, and holds back their retries', async () => {
    const { belfry, advance, clock, runs } = createTestBelfry({ now: NOW })
    const job = belfry.job('slow', {
      retry: { attempts: 2, backoff: 'fixed', delay: '1m' },
      run: async ({ payload, run }) => {
        await new Promise<void>((resolve) => clock.after(60_000, resolve))
        if (payload === 'bad' && run.attempt === 1) throw new Error('no')
      },
    })
    await belfry.start()
    await job.enqueue('good')
    await job.enqueue('bad')
    await advance('1s')
    await belfry.freeze()
    await advance('1h')
    expect((await runs('slow')).map(({ state, attempt }) => [state, attempt])).toEqual([
      ['succeeded', 1],
      ['ready', 1],
    ])
    await belfry.thaw()
    await advance('5m')
    expect((await runs('slow'))[1]).toMatchObject({ state: 'succeeded', attempt: 2 })
  })
})

describe('a takeover', () => {
  it('follows a crash, is not charged as a failure, and ends the run as LOST after three', async () => {
    const kit = createTestBelfry({ now: NOW })
    const start = async () => {
      const belfry = kit.instance()
      const job = belfry.job('poison', { retry: { attempts: 1 }, run: () => new Promise(() => {}) })
      await belfry.start()
      return { belfry, job }
    }
    const first = await start()
    const { run } = await first.job.enqueue(null)
    await kit.advance('1s')
    let last = first.belfry
    for (const takeovers of [1, 2, 3]) {
      const { belfry } = await start()
      kit.crash(last)
      await kit.expireLeases()
      expect(await belfry.runs.get(run)).toMatchObject({
        state: 'running',
        attempt: takeovers + 1,
        takeovers,
        failures: 0,
      })
      last = belfry
    }
    const { belfry } = await start()
    kit.crash(last)
    await kit.expireLeases()
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'failed', error: { code: 'LOST' } })
  })
})

describe('signals', () => {
  const forgotten: Belfry[] = []

  afterEach(async () => {
    vi.restoreAllMocks()
    for (const belfry of forgotten.splice(0)) await belfry.stop({ grace: 0 })
  })

  it('are left to the host process by default', async () => {
    const before = [process.listenerCount('SIGTERM'), process.listenerCount('SIGINT')]
    const { belfry } = createTestBelfry()
    forgotten.push(belfry)
    await belfry.start()
    expect([process.listenerCount('SIGTERM'), process.listenerCount('SIGINT')]).toEqual(before)
  })

  it('true handles SIGTERM and SIGINT until the instance is stopped', async () => {
    const counts = () => [process.listenerCount('SIGTERM'), process.listenerCount('SIGINT')]
    const before = counts()
    const { belfry } = createTestBelfry({ signals: true })
    forgotten.push(belfry)
    await belfry.start()
    expect(counts()).toEqual(before.map((count) => count + 1))
    await belfry.stop()
    expect(counts()).toEqual(before)
  })

  it('stop the instance with its grace, and then have their usual effect', async () => {
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
    const { belfry, advance, clock, runs } = createTestBelfry({ signals: ['SIGUSR2'], stopGrace: '1m' })
    forgotten.push(belfry)
    const job = belfry.job('slow', { run: () => new Promise<void>((resolve) => clock.after(30_000, resolve)) })
    await belfry.start()
    await job.enqueue(null)
    await advance('1s')
    process.emit('SIGUSR2', 'SIGUSR2')
    await advance('10s')
    expect(kill).not.toHaveBeenCalled()
    await advance('30s')
    expect((await runs('slow')).map(({ state }) => state)).toEqual(['succeeded'])
    expect(kill.mock.calls).toEqual([[process.pid, 'SIGUSR2']])
    expect(process.listenerCount('SIGUSR2')).toBe(0)
  })
})

describe('events', () => {
  it('report what happens in this process, in order, until the listener is removed', async () => {
    const { belfry, advance } = createTestBelfry({ now: NOW })
    const told: string[] = []
    const job = belfry.job('mail', { run: () => 'sent' })
    belfry.schedule('mail/hourly', { every: '1h', job })
    belfry.on('instance:joined', ({ instance }) => told.push(`joined ${instance === belfry.instance}`))
    belfry.on('ticks:recorded', ({ recorded, skipped }) => told.push(`recorded ${recorded} ${skipped}`))
    const off = belfry.on('run:started', ({ run }) => told.push(`started ${run.attempt}`))
    belfry.on('run:succeeded', ({ result, durationMs }) => told.push(`succeeded ${result} ${durationMs}`))
    await belfry.start()
    await advance('1h')
    expect(told).toEqual(['joined true', 'recorded 1 0', 'started 1', 'succeeded sent 0'])
    off()
    told.length = 0
    await job.enqueue(null)
    await advance('1s')
    expect(told).toEqual(['succeeded sent 0'])
  })

  it('continue when a listener throws: the error is logged, and the run continues', async () => {
    const errors: string[] = []
    const logger: Logger = { debug() {}, info() {}, warn() {}, error: (_, message) => void errors.push(message) }
    const { belfry, advance, runs } = createTestBelfry({ logger })
    const told: string[] = []
    const job = belfry.job('mail', { run: () => null })
    belfry.on('run:started', () => {
      throw new Error('no')
    })
    belfry.on('run:started', () => told.push('started'))
    await belfry.start()
    await job.enqueue(null)
    await advance('1s')
    expect(told).toEqual(['started'])
    expect(errors).toEqual(['an event listener failed; it is ignored'])
    expect((await runs('mail')).map(({ state }) => state)).toEqual(['succeeded'])
  })

  it('report an attempt that settled too late', async () => {
    const { belfry, advance, clock, store } = createTestBelfry()
    const stale: string[] = []
    const job = belfry.job('slow', {
      exclusive: true,
      run: ({ run }) => (run.attempt === 1 ? new Promise<void>((resolve) => clock.after(10_000, resolve)) : null),
    })
    belfry.on('run:stale', ({ run }) => stale.push(run.id))
    await belfry.start()
    const { run } = await job.enqueue(null)
    await advance('1s')
    await store.leases.reset('job:slow:null')
    await advance('1m')
    expect(stale).toEqual([run])
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'succeeded', attempt: 2 })
  })
})

describe('metrics', () => {
  it('count ticks, runs by job and outcome, and store operations', async () => {
    const { belfry, advance } = createTestBelfry({ now: NOW })
    const job = belfry.job('mail', {
      retry: { attempts: 2 },
      run: ({ payload }) => {
        if (payload === 'bad') throw new Error('no')
      },
    })
    belfry.schedule('mail/hourly', { every: '1h', job, payload: 'good' })
    await belfry.start()
    await job.enqueue('bad')
    await advance('3h')
    const counter = (name: string, labels: object = {}) =>
      belfry.metrics.counters().find((sample) => sample.name === name && sameLabels(sample.labels, labels))?.value
    expect(counter('belfry_ticks_recorded_total')).toBe(3)
    expect(counter('belfry_runs_total', { target: 'mail', outcome: 'succeeded' })).toBe(3)
    expect(counter('belfry_runs_total', { target: 'mail', outcome: 'retrying' })).toBe(1)
    expect(counter('belfry_runs_total', { target: 'mail', outcome: 'failed' })).toBe(1)
    const histogram = (name: string, labels: object) =>
      belfry.metrics.histograms().find((sample) => sample.name === name && sameLabels(sample.labels, labels))?.value
    expect(histogram('belfry_run_duration_ms', { target: 'mail' })).toMatchObject({ count: 5, sum: 0 })
    const settles = histogram('belfry_store_operation_ms', { operation: 'runs.settle' })
    expect(settles?.count).toBe(5)
    expect(settles?.buckets.reduce((sum, count) => sum + count, 0)).toBe(5)
  })
})

function sameLabels(one: object, other: object): boolean {
  return JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort())
}
