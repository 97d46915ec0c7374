/**
 * The metrics of this process as Prometheus reads them (text format 0.0.4): base units, and a bounded number of series
 * whatever the number of schedules. What concerns the whole store (backlog, instances) is asked for when the page is, and
 * left out when the store does not answer in time: a scrape is worth most when something is wrong.
 */
import { type Clock, sleep, systemClock } from '../../core/clock.js'
import { BUCKETS_MS, type Histogram, type Labels, type Metrics, type Sample } from '../../engine/metrics.js'
import { fresh } from '../http/cached.js'

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** What the page is made from: a Belfry is one. */
export interface MetricsSource {
  readonly metrics: Metrics
  stats(): Promise<WholeStore>
}

interface WholeStore {
  readonly instances: { readonly live: number }
  readonly frozen?: unknown
  /** Runs that could begin now. Counted up to a bound: nothing here counts a table. */
  readonly due: { readonly count: number; readonly more: boolean }
  /** Runs that wait for a key, for an earlier run, or for an instance that knows their job. */
  readonly waiting: { readonly count: number }
}

const COUNTERS = {
  belfry_ticks_recorded_total: 'Ticks that this instance recorded.',
  belfry_ticks_skipped_total: 'Ticks that this instance recorded as skipped.',
  belfry_claims_total: 'Attempts that this instance began.',
  belfry_runs_total: 'Attempts that ended here, by target and outcome.',
  belfry_stale_settles_total: 'Attempts that were over before they could settle: somebody else had the run.',
  belfry_takeovers_total: 'Runs of dead instances that this instance took over, ready again or lost for good.',
  belfry_locks_lost_total: 'Locks that this instance lost while it held them.',
  belfry_leases_lost_total: 'Times that this instance was given up for dead, and lost all it held.',
  belfry_sink_outages_total: 'Times that this instance could not reach a sink, by sink.',
  belfry_sink_recoveries_total: 'Outages of sinks that are over: fewer than outages while one is going on.',
  belfry_store_errors_total: 'Operations of the store that failed, by operation.',
  belfry_store_outages_total: 'Times that the store was out of reach.',
} as const

/** By their name here; on the page they are in seconds. */
const HISTOGRAMS = {
  belfry_run_lateness_ms: 'How long after its instant a run began.',
  belfry_run_duration_ms: 'How long attempts took, by target.',
  belfry_event_loop_delay_ms: 'How late the event loop of this process comes to a timer.',
  belfry_store_operation_ms: 'How long operations of the store took, by operation.',
} as const

const UNLABELLED = new Set<string>(
  Object.keys(COUNTERS).filter(
    (name) => !/_(runs|takeovers|store_errors|sink_outages|sink_recoveries)_total$/.test(name),
  ),
)

/** A belfry whose store is looked at once in a second, however many ask for the page. */
export function metricsSource(belfry: MetricsSource): MetricsSource {
  return { metrics: belfry.metrics, stats: fresh(() => belfry.stats(), FRESH_MS) }
}

const FRESH_MS = 1_000
/** How long a scrape waits for the store. */
const PATIENCE_MS = 2_000

export async function metricsPage(belfry: MetricsSource, clock: Clock = systemClock): Promise<string> {
  const whole = await wholeStore(belfry, clock)
  const lines = [...gauges(whole)]
  const counters = belfry.metrics.counters()
  for (const [name, help] of Object.entries(COUNTERS)) {
    const samples = counters.filter((sample) => sample.name === name)
    lines.push(...head(name, 'counter', help))
    if (samples.length === 0 && UNLABELLED.has(name)) lines.push(`${name} 0`)
    for (const { labels, value } of samples) lines.push(`${name}${labelText(labels)} ${value}`)
  }
  const histograms = belfry.metrics.histograms()
  for (const [name, help] of Object.entries(HISTOGRAMS)) {
    lines.push(...head(inSeconds(name), 'histogram', help))
    for (const sample of histograms) if (sample.name === name) lines.push(...histogramLines(sample))
  }
  return `${lines.join('\n')}\n`
}

/** Undefined when the store does not answer in time. */
async function wholeStore(belfry: MetricsSource, clock: Clock): Promise<WholeStore | undefined> {
  const asked = belfry.stats().catch(() => undefined)
  const done = new AbortController()
  const answer = await Promise.race([asked, sleep(clock, PATIENCE_MS, done.signal).then(() => undefined)])
  done.abort()
  return answer
}

function* gauges(whole: WholeStore | undefined): Iterable<string> {
  yield* gauge('belfry_up', 'This process answers.', 1)
  yield* gauge('belfry_store_up', 'The store answered this scrape.', whole === undefined ? 0 : 1)
  if (whole === undefined) return
  const { instances, frozen, due, waiting } = whole
  yield* gauge('belfry_instances', 'Instances of the store that are alive.', instances.live)
  yield* gauge('belfry_frozen', 'Starting runs is stopped for the whole store.', frozen === undefined ? 0 : 1)
  yield* gauge(
    'belfry_backlog_runs',
    'Runs of the store that are due and have not begun, counted up to a bound for each job and sink.',
    due.count,
  )
  yield* gauge('belfry_waiting_runs', 'Runs that wait for a key, a run or a job, up to a bound.', waiting.count)
  yield* gauge('belfry_backlog_is_more', 'The backlog is larger than was counted.', due.more ? 1 : 0)
}

function* gauge(name: string, help: string, value: number): Iterable<string> {
  yield* head(name, 'gauge', help)
  yield `${name} ${value}`
}

function head(name: string, type: string, help: string): readonly string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`]
}

function* histogramLines({ name, labels, value }: Sample<Histogram>): Iterable<string> {
  const base = inSeconds(name)
  let below = 0
  for (const [at, boundMs] of BUCKETS_MS.entries()) {
    below += value.buckets[at] ?? 0
    yield `${base}_bucket${labelText({ ...labels, le: String(boundMs / 1_000) })} ${below}`
  }
  yield `${base}_bucket${labelText({ ...labels, le: '+Inf' })} ${value.count}`
  yield `${base}_sum${labelText(labels)} ${value.sum / 1_000}`
  yield `${base}_count${labelText(labels)} ${value.count}`
}

function inSeconds(name: string): string {
  return name.replace(/_ms$/, '_seconds')
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}
