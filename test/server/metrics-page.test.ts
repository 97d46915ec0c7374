import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Belfry } from '../../src/belfry.js'
import { METRICS, metricNames, nameOnPage } from '../../src/engine/metrics/metric-table.js'
import { MAX_TARGETS } from '../../src/engine/metrics/metrics.js'
import { type MetricsSource, metricsPage } from '../../src/server/shapes/metrics-page.js'
import { createTestBelfry } from '../../src/testing/index.js'
import { type Family, parseExposition } from './exposition.js'

const STATS = { instances: { live: 2 }, due: { count: 7, more: false }, waiting: { count: 3 } }

function source({ metrics }: Belfry, stats: MetricsSource['stats'] = async () => STATS): MetricsSource {
  return { metrics, stats }
}

async function page(belfry: Belfry): Promise<Map<string, Family>> {
  return parseExposition(await metricsPage(source(belfry)))
}

function value(families: Map<string, Family>, name: string, labels: object = {}): number | undefined {
  const samples = [...families.values()].flatMap((family) => family.samples)
  return samples.find((each) => each.name === name && same(each.labels, labels))?.value
}

function same(one: object, other: object): boolean {
  return JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort())
}

function seriesOf(families: Map<string, Family>): number {
  return [...families.values()].reduce((sum, { samples }) => sum + samples.length, 0)
}

describe('the metrics page', () => {
  it('has every metric from the start, at zero', async () => {
    const { belfry } = createTestBelfry()
    const families = await page(belfry)
    expect([...families.keys()]).toEqual([
      ...['belfry_up', 'belfry_store_up', 'belfry_instances', 'belfry_frozen', 'belfry_backlog_runs'],
      ...[
        'belfry_waiting_runs',
        'belfry_backlog_is_more',
        'belfry_ticks_recorded_total',
        'belfry_ticks_skipped_total',
        'belfry_claims_total',
      ],
      ...[
        'belfry_runs_total',
        'belfry_runs_skipped_total',
        'belfry_stale_settles_total',
        'belfry_takeovers_total',
        'belfry_locks_lost_total',
      ],
      ...['belfry_leases_lost_total', 'belfry_sink_outages_total', 'belfry_sink_recoveries_total'],
      ...['belfry_store_errors_total', 'belfry_store_outages_total'],
      ...['belfry_run_lateness_seconds', 'belfry_run_duration_seconds', 'belfry_event_loop_delay_seconds'],
      'belfry_store_operation_seconds',
    ])
    expect(value(families, 'belfry_up')).toBe(1)
    expect(value(families, 'belfry_instances')).toBe(2)
    expect(value(families, 'belfry_backlog_runs')).toBe(7)
    expect(value(families, 'belfry_claims_total')).toBe(0)
  })

  it('counts ticks, claims and runs by outcome, with durations in seconds', async () => {
    const { belfry, advance } = createTestBelfry()
    const job = belfry.job<string>('say "hi"\\', {
      retry: { attempts: 2, delay: '1s' },
      run: ({ payload }) => {
        if (payload === 'bad') throw new Error('no')
      },
    })
    belfry.schedule('hourly', { every: '1h', job, payload: 'good' })
    await belfry.start()
    await job.enqueue('bad')
    await advance('3h')
    const families = await page(belfry)
    const target = 'say "hi"\\'
    expect(value(families, 'belfry_ticks_recorded_total')).toBe(3)
    expect(value(families, 'belfry_claims_total')).toBe(5)
    expect(value(families, 'belfry_runs_total', { target, outcome: 'succeeded' })).toBe(3)
    expect(value(families, 'belfry_runs_total', { target, outcome: 'retrying' })).toBe(1)
    expect(value(families, 'belfry_runs_total', { target, outcome: 'failed' })).toBe(1)
    expect(value(families, 'belfry_run_duration_seconds_count', { target })).toBe(5)
    expect(value(families, 'belfry_run_lateness_seconds_count')).toBe(5)
    expect(value(families, 'belfry_run_lateness_seconds_bucket', { le: '0.25' })).toBe(5)
    expect(value(families, 'belfry_store_operation_seconds_count', { operation: 'runs.settle' })).toBe(5)
    await belfry.stop()
  })

  it('counts takeovers, and settlements of stale attempts', async () => {
    const { belfry, instance, crash, expireLeases, advance } = createTestBelfry()
    const define = (one: Belfry) =>
      one.job('slow', {
        exclusive: true,
        run: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)),
      })
    const job = define(belfry)
    const other = instance()
    await belfry.start()
    await job.enqueue(null)
    await advance('1s')
    define(other)
    await other.start()
    crash(belfry)
    await expireLeases()
    const families = await page(other)
    expect(value(families, 'belfry_takeovers_total', { outcome: 'ready' })).toBe(1)
    expect(value(families, 'belfry_takeovers_total', { outcome: 'lost' })).toBe(0)
    expect(value(families, 'belfry_claims_total')).toBe(1)
    const [run] = (await other.runs.list()).items
    expect(await other.locks.reset(run?.key?.name ?? '')).toBe(1)
    await advance('20m')
    expect(value(await page(other), 'belfry_stale_settles_total')).toBe(1)
    const stopped = other.stop({ grace: 0 })
    await advance('1m')
    await stopped
  })

  it('has as many series with 100,000 schedules as with one', async () => {
    const { belfry, advance } = createTestBelfry()
    belfry.job('work', { concurrency: 100_000, keep: 'none', run: () => {} })
    await belfry.start()
    await belfry.schedules.putMany([['s', { every: '1h', job: 'work' }]])
    await belfry.schedules.trigger('s')
    await advance('1h')
    const before = seriesOf(await page(belfry))
    const many = Array.from({ length: 100_000 }, (_, at) => [`s/${at}`, { every: '1000d', job: 'work' }] as const)
    await belfry.schedules.putMany(many)
    for (let at = 0; at < 20; at += 1) await belfry.schedules.trigger(`s/${at}`)
    await advance('1h')
    const families = await page(belfry)
    expect(value(families, 'belfry_runs_total', { target: 'work', outcome: 'succeeded' })).toBe(23)
    expect(seriesOf(families)).toBe(before)
    await belfry.stop()
  })

  it('gives a bounded number of targets their own series, and combines the others', async () => {
    const { belfry, advance } = createTestBelfry({ concurrency: 1_000 })
    const odd = 'a"b\\c\\n{x="1",le="2"} 3 # HELP|\u2028é'
    const names = [odd, '__proto__', ...Array.from({ length: MAX_TARGETS + 48 }, (_, at) => `job ${at}`)]
    const jobs = names.map((name) => belfry.job(name, { run: () => {} }))
    await belfry.start()
    for (const job of jobs) await job.enqueue(null)
    await advance('1s')
    const families = await page(belfry)
    const targets = families.get('belfry_runs_total')?.samples ?? []
    expect(targets).toHaveLength(MAX_TARGETS + 1)
    expect(value(families, 'belfry_runs_total', { target: 'other', outcome: 'succeeded' })).toBe(50)
    expect(value(families, 'belfry_run_duration_seconds_count', { target: 'other' })).toBe(50)
    for (const target of [odd, '__proto__']) {
      expect(value(families, 'belfry_runs_total', { target, outcome: 'succeeded' })).toBe(1)
    }
    await belfry.stop()
  })

  it.each([
    ['fails', () => Promise.reject(new Error('gone'))],
    ['does not answer', () => new Promise<never>(() => {})],
  ])('is served and marked when the store %s', async (_, stats) => {
    const { belfry, clock } = createTestBelfry()
    const asked = metricsPage(source(belfry, stats), clock)
    await clock.advance(5_000)
    const families = parseExposition(await asked)
    expect(value(families, 'belfry_store_up')).toBe(0)
    expect(families.has('belfry_backlog_runs')).toBe(false)
  })
})

describe('docs/service.md', () => {
  it('lists every metric with its kind, labels and help, in the order of the page', () => {
    const docs = readFileSync(new URL('../../docs/service.md', import.meta.url), 'utf8')
    const listed = docs.split('\n').filter((line) => line.startsWith('| `belfry_'))
    const names = [...metricNames('gauge'), ...metricNames('counter'), ...metricNames('histogram')]
    expect(listed.map((line) => line.replaceAll(/ +/g, ' '))).toEqual(
      names.map((name) => {
        const { kind, labels, help } = METRICS[name]
        const labelled = labels.length === 0 ? '' : `{${labels.join(',')}}`
        return `| \`${nameOnPage(name)}${labelled}\` | ${kind} | ${help} |`
      }),
    )
  })
})

describe('the strict parser of the format', () => {
  const HEAD = '# HELP a_total x\n# TYPE a_total counter\n'

  it.each([
    ['no end of line', `${HEAD}a_total 1`],
    ['a sample without a family', 'a_total 1\n'],
    ['a sample of another family', `${HEAD}b_total 1\n`],
    ['HELP alone', '# HELP a_total x\na_total 1\n'],
    ['a series twice', `${HEAD}a_total{x="1"} 1\na_total{x="1"} 2\n`],
    ['a quote in a label', `${HEAD}a_total{x="a"b"} 1\n`],
    ['a backslash in a label', `${HEAD}a_total{x="a\\b"} 1\n`],
    ['no number', `${HEAD}a_total one\n`],
    ['a counter below zero', `${HEAD}a_total -1\n`],
    ['a counter by another name', '# HELP a x\n# TYPE a counter\na 1\n'],
    ['milliseconds', '# HELP a_ms x\n# TYPE a_ms gauge\na_ms 1\n'],
    ['a histogram that does not add up', histogram('1', '3', '2')],
    ['a histogram whose count differs', histogram('1', '2', '3')],
  ])('refuses %s', (_, text) => {
    expect(() => parseExposition(text)).toThrow()
  })

  it('accepts valid pages', () => {
    expect(parseExposition(histogram('1', '2', '2')).get('h')?.samples).toHaveLength(4)
    expect(parseExposition(`${HEAD}a_total{x="\\\\ \\" \\n",y="}"} 1.5e3\n`).get('a_total')?.samples).toEqual([
      { name: 'a_total', labels: { x: '\\ " \n', y: '}' }, value: 1_500 },
    ])
  })

  function histogram(one: string, all: string, count: string): string {
    return `# HELP h x\n# TYPE h histogram\nh_bucket{le="1"} ${one}\nh_bucket{le="+Inf"} ${all}\nh_sum 1\nh_count ${count}\n`
  }
})
