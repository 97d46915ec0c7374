import { describe, expect, it } from 'vitest'
import type { Finding } from '../../src/core/diagnosis.js'
import type { Sink } from '../../src/index.js'
import { createTestBelfry, type TestOptions } from '../../src/testing/index.js'

function setup(options: TestOptions = {}) {
  const kit = createTestBelfry({ now: '2026-01-01T00:00:00Z', ...options })
  const found = async (name: string): Promise<readonly Finding[]> =>
    (await kit.belfry.doctor()).filter((check) => check.name === name).flatMap(({ findings }) => findings)
  return { ...kit, found }
}

const fail = () => {
  throw new Error('no paper')
}

describe('the doctor looks at the last hour', () => {
  it('names a job that fails on every run, with the last error, and a schedule that never succeeded', async () => {
    const { belfry, advance, found } = setup()
    belfry.job('print', { retry: { attempts: 1 }, run: fail })
    belfry.job('well', { run: () => null })
    await belfry.start()
    await belfry.schedules.put('a', { every: '10m', job: 'print' })
    await belfry.schedules.put('b', { every: '10m', job: 'well' })
    await advance('45m')
    expect(await found('failures')).toEqual([
      {
        what: 'the job "print" failed in 4 of 4 runs of the last hour, last with: no paper',
        fix: expect.stringMatching(
          /^belfry run \S+ shows its attempts; mend the job, then: belfry retry --job "print"/,
        ),
      },
    ])
    expect(await found('schedules')).toEqual([
      {
        what: 'the schedule "a" has never succeeded: 4 of its newest runs failed, last with: no paper',
        fix: 'belfry explain "a"; belfry pause "a" stops it',
      },
    ])
    await belfry.schedules.pause('a')
    await advance('2h')
    expect(await found('failures')).toEqual([])
  })

  it('does not count a job of which half of the runs succeed, and one that keeps its failures only', async () => {
    const { belfry, advance, found } = setup()
    let count = 0
    const sometimes = () => {
      count += 1
      if (count % 2 === 0) fail()
    }
    belfry.job('half', { retry: { attempts: 1 }, run: sometimes })
    belfry.job('quiet', { retry: { attempts: 1 }, keep: 'failures', run: sometimes })
    await belfry.start()
    await belfry.schedules.put('a', { every: '10m', job: 'half' })
    await belfry.schedules.put('b', { every: '10m', job: 'quiet' })
    await advance('45m')
    expect(await found('failures')).toEqual([])
    expect(await found('schedules')).toEqual([])
  })

  it('names a sink whose receiver refuses everything, before and after its attempts are used up', async () => {
    const hook: Sink = {
      deliver: async (messages) => messages.map(() => ({ delivered: false, error: new Error('answered 500') })),
      delivery: { retry: { attempts: 2, delay: '30m', backoff: 'fixed' } },
    }
    const { belfry, advance, found } = setup({ sinks: { hook } })
    await belfry.start()
    await belfry.schedules.put('a', { every: '10m', to: 'hook', times: 2, onFinish: 'keep' })
    await advance('25m')
    const what = 'the sink "hook" failed in 2 of 2 runs of the last hour, last with: answered 500'
    expect(await found('failures')).toMatchObject([{ what }])
    expect(await found('dead letters')).toEqual([])
    await advance('50m')
    expect(await found('failures')).toMatchObject([{ what }])
    expect(await found('dead letters')).toEqual([
      {
        what: '2 events for the sink "hook" failed for good in the last hour, last with: answered 500',
        fix: 'mend the receiver, then: belfry retry --to "hook" --state failed',
      },
    ])
  })

  it('names a backlog that grows, and where runs are late', async () => {
    const { belfry, advance, found } = setup({ concurrency: 1 })
    belfry.job('slow', { timeout: '1d', run: () => new Promise<never>(() => {}) })
    await belfry.start()
    await belfry.schedules.put('a', { every: '10s', job: 'slow', backlog: 'keep' })
    await advance('10m')
    expect((await found('backlog'))[0]?.what).toMatch(/^the backlog of the job "slow" grows: \d+ runs are due/)
    expect((await found('lateness'))[0]?.what).toMatch(/the oldest for the job "slow", and .* have no free slot$/)
  })

  it('names a key that a run has held for far longer than usual', async () => {
    const { belfry, advance, found } = setup()
    let hangs = false
    const job = belfry.job('export', {
      exclusive: true,
      timeout: '1d',
      run: () => (hangs ? new Promise<never>(() => {}) : undefined),
    })
    await belfry.start()
    for (let count = 0; count < 6; count += 1) {
      await job.enqueue(null)
      await advance('10s')
    }
    hangs = true
    const { run } = await job.enqueue(null)
    await advance('30s')
    expect(await found('locks')).toEqual([])
    await advance('5m')
    expect(await found('locks')).toEqual([
      {
        what: expect.stringMatching(`^run ${run} has held the key "job:export:null" for 330 s, and 95 % of the runs`),
        fix: expect.stringContaining(`belfry cancel ${run} ends it`),
      },
    ])
  })

  it('names schedules of former code that nothing declares now, which start() says once', async () => {
    const lines: string[] = []
    const logger = { debug() {}, info() {}, warn: (_: object, line: string) => void lines.push(line), error() {} }
    const { belfry, instance, advance, found } = setup({ logger })
    belfry.job('report', { run: () => null })
    belfry.schedule('daily', { every: '1d', job: 'report' })
    belfry.schedule('kept', { every: '1d', job: 'report' })
    await belfry.start()
    expect(await found('declarations')).toEqual([])
    await belfry.stop()
    const next = instance()
    next.job('report', { run: () => null })
    next.schedule('nightly', { every: '1d', job: 'report' })
    next.schedule('kept', { every: '1d', job: 'report' })
    await next.start()
    await advance('1m')
    expect(lines.filter((line) => line.includes('belfry rm "daily"'))).toHaveLength(1)
    const checks = await next.doctor()
    const findings = checks.filter(({ name }) => name === 'declarations').flatMap(({ findings: own }) => own)
    expect(findings.map(({ what }) => what)).toEqual([expect.stringContaining('the schedule "daily" was declared')])
    await next.schedules.remove('daily')
    expect((await next.doctor()).find(({ name }) => name === 'declarations')?.findings).toEqual([])
    await next.stop()
  })
})
