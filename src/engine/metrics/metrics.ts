import type { Run } from '../../core/runs/run.js'
import type { Events } from '../events.js'
import { type LabelsOf, METRICS, type MetricName, metricNames } from './metric-table.js'

/** Upper bounds in milliseconds. One more bucket counts larger values. */
export const HISTOGRAM_BUCKETS_MS = [
  1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000, 600_000,
] as const

export interface Histogram {
  readonly buckets: readonly number[]
  readonly count: number
  readonly sum: number
}

export type Labels = Readonly<Record<string, string>>

export interface MetricSample<Value> {
  readonly name: string
  readonly labels: Labels
  readonly value: Value
}

/** Users choose the names of jobs and sinks, so their number is bounded. Names beyond this many share the label `other`. */
export const MAX_TARGETS = 100
const OTHER = 'other'

const OUTCOMES = ['succeeded', 'failed', 'retrying', 'cancelled', 'released'] as const

interface MutableHistogram {
  buckets: number[]
  count: number
  sum: number
}

interface Series<Value> {
  readonly name: string
  readonly labels: Labels
  value: Value
}

/**
 * Counters and histograms of one process, for a metrics page. Events and the measured store (`store/measured.ts`) feed them.
 */
export class Metrics {
  readonly #counters = new Map<string, Series<number>>()
  readonly #histograms = new Map<string, Series<MutableHistogram>>()
  readonly #targets = new Set<string>()

  constructor(events: Events) {
    this.#startAtZero()
    this.#countRuns(events)
    events.on('ticks:recorded', ({ recorded, skipped }) => {
      this.count('belfry_ticks_recorded_total', {}, recorded)
      this.count('belfry_ticks_skipped_total', {}, skipped)
    })
    events.on('lock:lost', () => this.count('belfry_locks_lost_total', {}))
    events.on('instance:lost', () => this.count('belfry_leases_lost_total', {}))
    events.on('store:unreachable', () => this.count('belfry_store_outages_total', {}))
    events.on('sink:unreachable', ({ sink }) => this.count('belfry_sink_outages_total', { target: this.#label(sink) }))
    events.on('sink:recovered', ({ sink }) => this.count('belfry_sink_recoveries_total', { target: this.#label(sink) }))
  }

  count<Name extends MetricName<'counter'>>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    seriesOf(this.#counters, name, labels, () => 0).value += by
  }

  observe<Name extends MetricName<'histogram'>>(name: Name, labels: LabelsOf<Name>, ms: number): void {
    record(seriesOf(this.#histograms, name, labels, emptyHistogram).value, ms)
  }

  /** Starts the series of these sinks at zero: Prometheus sees the first outage only as an increase of a known series. */
  expectSinks(names: Iterable<string>): void {
    for (const name of names) {
      const labels = { target: this.#label(name) }
      this.count('belfry_sink_outages_total', labels, 0)
      this.count('belfry_sink_recoveries_total', labels, 0)
    }
  }

  counters(): readonly MetricSample<number>[] {
    return [...this.#counters.values()].map((series) => ({ ...series }))
  }

  histograms(): readonly MetricSample<Histogram>[] {
    return [...this.#histograms.values()].map(({ value, ...series }) => ({
      ...series,
      value: { ...value, buckets: [...value.buckets] },
    }))
  }

  /** Counters without labels have one series, which exists from the start. */
  #startAtZero(): void {
    for (const name of metricNames('counter')) {
      if (METRICS[name].labels.length === 0) seriesOf(this.#counters, name, {}, () => 0)
    }
  }

  #countRuns(events: Events): void {
    events.on('run:started', ({ run }) => {
      this.count('belfry_claims_total', {})
      this.observe('belfry_run_lateness_ms', {}, Math.max(run.startedAt - run.readyAt, 0))
    })
    for (const outcome of OUTCOMES) {
      events.on(`run:${outcome}`, ({ run, durationMs }) => {
        const target = this.#targetLabel(run)
        this.count('belfry_runs_total', { target, outcome })
        this.observe('belfry_run_duration_ms', { target }, durationMs)
      })
    }
    events.on('run:skipped', ({ run, reason }) => {
      this.count('belfry_runs_skipped_total', { target: this.#targetLabel(run), reason })
    })
    events.on('run:stale', ({ run }) => {
      this.count('belfry_stale_settles_total', {})
      this.count('belfry_runs_total', { target: this.#targetLabel(run), outcome: 'stale' })
    })
    events.on('runs:taken-over', ({ rescued, lost }) => {
      this.count('belfry_takeovers_total', { outcome: 'ready' }, rescued)
      this.count('belfry_takeovers_total', { outcome: 'lost' }, lost)
    })
  }

  #targetLabel({ target }: Pick<Run, 'target'>): string {
    return this.#label('job' in target ? target.job : target.sink)
  }

  #label(target: string): string {
    if (this.#targets.has(target)) return target
    if (this.#targets.size >= MAX_TARGETS) return OTHER
    this.#targets.add(target)
    return target
  }
}

function seriesOf<Value>(
  all: Map<string, Series<Value>>,
  name: string,
  labels: Labels,
  empty: () => Value,
): Series<Value> {
  const key = [name, ...Object.values(labels)].join('|')
  const known = all.get(key)
  if (known !== undefined) return known
  const added = { name, labels, value: empty() }
  all.set(key, added)
  return added
}

function record(histogram: MutableHistogram, ms: number): void {
  const found = HISTOGRAM_BUCKETS_MS.findIndex((bound) => ms <= bound)
  const bucket = found === -1 ? HISTOGRAM_BUCKETS_MS.length : found
  histogram.buckets[bucket] = (histogram.buckets[bucket] ?? 0) + 1
  histogram.count += 1
  histogram.sum += ms
}

function emptyHistogram(): MutableHistogram {
  return { buckets: new Array<number>(HISTOGRAM_BUCKETS_MS.length + 1).fill(0), count: 0, sum: 0 }
}
