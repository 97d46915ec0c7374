/**
 * The metrics of this process in Prometheus' text format 0.0.4, in base units. The number of series does not grow with the
 * number of schedules. Gauges of the whole store need a read of the store; the page leaves them out when the store does not
 * answer in time, so that a scrape succeeds during an outage.
 */

import { cachedRead } from '../../api/cached-read.js'
import { type Clock, sleep, systemClock } from '../../core/clock.js'
import { METRICS, type MetricName, metricNames, nameOnPage } from '../../engine/metrics/metric-table.js'
import {
  HISTOGRAM_BUCKETS_MS,
  type Histogram,
  type Labels,
  type MetricSample,
  type Metrics,
} from '../../engine/metrics/metrics.js'

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The part of a Belfry that the page reads. */
export interface MetricsSource {
  readonly metrics: Metrics
  stats(): Promise<StoreStats>
}

interface StoreStats {
  readonly instances: { readonly live: number }
  readonly frozen?: unknown
  readonly due: { readonly count: number; readonly more: boolean }
  readonly waiting: { readonly count: number }
}

const FRESH_MS = 1_000
const STORE_TIMEOUT_MS = 2_000

/** Reads the store at most once a second, however often the page is scraped. */
export function metricsSource(belfry: MetricsSource): MetricsSource {
  return { metrics: belfry.metrics, stats: cachedRead(() => belfry.stats(), FRESH_MS) }
}

export async function metricsPage(belfry: MetricsSource, clock: Clock = systemClock): Promise<string> {
  const gauges = gaugeValues(await storeStats(belfry, clock))
  const counters = belfry.metrics.counters()
  const histograms = belfry.metrics.histograms()
  const lines: string[] = []
  for (const name of metricNames('gauge')) {
    const value = gauges[name]
    if (value !== undefined) lines.push(...head(name), `${name} ${value}`)
  }
  for (const name of metricNames('counter')) {
    const samples = counters.filter((sample) => sample.name === name)
    lines.push(...head(name), ...samples.map(({ labels, value }) => `${name}${labelText(labels)} ${value}`))
  }
  for (const name of metricNames('histogram')) {
    const samples = histograms.filter((sample) => sample.name === name)
    lines.push(...head(name), ...samples.flatMap((sample) => [...histogramLines(nameOnPage(name), sample)]))
  }
  return `${lines.join('\n')}\n`
}

async function storeStats(belfry: MetricsSource, clock: Clock): Promise<StoreStats | undefined> {
  const stats = belfry.stats().catch(() => undefined)
  const done = new AbortController()
  const answer = await Promise.race([stats, sleep(clock, STORE_TIMEOUT_MS, done.signal).then(() => undefined)])
  done.abort()
  return answer
}

function gaugeValues(stats: StoreStats | undefined): Readonly<Record<MetricName<'gauge'>, number | undefined>> {
  return {
    belfry_up: 1,
    belfry_store_up: stats === undefined ? 0 : 1,
    belfry_instances: stats?.instances.live,
    belfry_frozen: stats && (stats.frozen === undefined ? 0 : 1),
    belfry_backlog_runs: stats?.due.count,
    belfry_waiting_runs: stats?.waiting.count,
    belfry_backlog_is_more: stats && (stats.due.more ? 1 : 0),
  }
}

function head(name: MetricName): readonly string[] {
  const { kind, help } = METRICS[name]
  return [`# HELP ${nameOnPage(name)} ${help}`, `# TYPE ${nameOnPage(name)} ${kind}`]
}

function* histogramLines(name: string, { labels, value }: MetricSample<Histogram>): Iterable<string> {
  let below = 0
  for (const [at, boundMs] of HISTOGRAM_BUCKETS_MS.entries()) {
    below += value.buckets[at] ?? 0
    yield `${name}_bucket${labelText({ ...labels, le: String(boundMs / 1_000) })} ${below}`
  }
  yield `${name}_bucket${labelText({ ...labels, le: '+Inf' })} ${value.count}`
  yield `${name}_sum${labelText(labels)} ${value.sum / 1_000}`
  yield `${name}_count${labelText(labels)} ${value.count}`
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}
