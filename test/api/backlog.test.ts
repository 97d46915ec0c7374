import { describe, expect, it } from 'vitest'
import type { ScheduleFields } from '../../src/index.js'
import { createTestBelfry } from '../../src/testing/index.js'

/** A schedule that ticks every five seconds for a minute without a worker. Then a worker starts. */
async function withoutWorkers(schedule: Partial<ScheduleFields>) {
  const kit = createTestBelfry({ roles: ['tick'] })
  await kit.belfry.start()
  await kit.belfry.schedules.put('a', { every: '5s', job: 'work', ...schedule })
  await kit.advance('61s')
  const lines: string[] = []
  const warn = (_: object, message: string) => void lines.push(message)
  const worker = kit.instance({
    roles: ['tick', 'run'],
    concurrency: 100,
    logger: { debug() {}, info() {}, warn, error() {} },
  })
  const [starts, skips]: [string[], string[]] = [[], []]
  worker.job('work', { run: ({ run }) => void starts.push(run.id) })
  worker.on('run:skipped', ({ run, reason }) => void skips.push(`${run.origin} ${run.schedule} ${reason}`))
  await worker.start()
  await kit.advance('1s')
  return { ...kit, worker, lines, starts, skips }
}

describe('ticks that no worker could start', () => {
  it('latest starts the newest, and those within grace', async () => {
    const { starts, skips } = await withoutWorkers({})
    expect(starts).toHaveLength(2)
    expect(skips).toEqual(Array.from({ length: 10 }, () => 'tick a missed'))
  })

  it('latest starts the newest alone when ticks are further apart than grace', async () => {
    const { starts, skips } = await withoutWorkers({ every: '15s' })
    expect(starts).toHaveLength(1)
    expect(skips).toHaveLength(3)
  })

  it('skip starts those within grace, all starts all', async () => {
    expect((await withoutWorkers({ missed: 'skip' })).starts).toHaveLength(2)
    expect((await withoutWorkers({ missed: 'all' })).starts).toHaveLength(12)
    expect((await withoutWorkers({ missed: { policy: 'all', within: '30s' } })).starts).toHaveLength(6)
  })

  it('backlog keep starts all', async () => {
    const { starts, skips } = await withoutWorkers({ backlog: 'keep' })
    expect(starts).toHaveLength(12)
    expect(skips).toEqual([])
  })

  it.each(['skip', 'queue-one', 'queue-all'] as const)('overlap %s starts what is left one by one', async (overlap) => {
    const { starts, runs } = await withoutWorkers({ overlap })
    expect(starts.length).toBeLessThanOrEqual(3)
    const reasons = new Set((await runs('a')).flatMap(({ reason }) => reason ?? []))
    expect(reasons).toEqual(new Set(['missed']))
  })

  it('is a warning with the reason, at most five in ten seconds, and a count', async () => {
    const { lines, worker } = await withoutWorkers({})
    expect(lines.filter((line) => line.includes('was skipped (missed)'))).toHaveLength(5)
    expect(lines[0]).toMatch(/^run \S+ of job "work" was skipped \(missed\): no worker started it in time/)
    const skipped = worker.metrics.counters().filter(({ name }) => name === 'belfry_runs_skipped_total')
    expect(skipped).toMatchObject([{ labels: { target: 'work', reason: 'missed' }, value: 10 }])
  })
})
