/** Counters and histograms that a metrics page can read. Fed by events and by a wrapper around the store. */
import type { Clock } from '../core/clock.js'
import type { Run } from '../core/run.js'
import type { Store } from '../core/store.js'
import type { Events } from './events.js'
import { eachOperation, type Operation } from './store/each-operation.js'

/** Upper bounds in milliseconds; one more bucket holds what is above. */
export const BUCKETS_MS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000, 600_000] as const

export interface Histogram {
  readonly buckets: readonly number[]
  readonly count: number
  readonly sum: number
}

export type Labels = Readonly<Record<string, string>>

export interface Sample<Value> {
  readonly name: string
  readonly labels: Labels
  readonly value: Value
}

/** Names of jobs and sinks are users' data: so many of them have series of their own, and all others share one. */
export const MAX_TARGETS = 100
const OTHER = 'other'

const NO_LABELS: Labels = {}

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

const OUTCOMES = ['succeeded', 'failed', 'retrying', 'cancelled', 'released'] as const
type Outcome = (typeof OUTCOMES)[number]

interface End {
  readonly total: Series<number>
  readonly duration: Series<MutableHistogram>
}

export class Metrics {
  readonly #counters = new Map<string, Series<number>>()
  readonly #histograms = new Map<string, Series<MutableHistogram>>()
  /** The series of ended runs, by outcome and target. */
  readonly #ends = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, new Map()])) as Record<
    Outcome,
    Map<string, End>
  >

  readonly #targets = new Set<string>()

  constructor(events: Events) {
    events.on('ticks:recorded', ({ recorded, skipped }) => {
      this.count('belfry_ticks_recorded_total', {}, recorded)
      this.count('belfry_ticks_skipped_total', {}, skipped)
    })
    events.on('run:started', ({ run }) => {
      this.count('belfry_claims_total', NO_LABELS)
      this.observe('belfry_run_lateness_ms', NO_LABELS, Math.max(run.startedAt - run.readyAt, 0))
    })
    for (const outcome of OUTCOMES) {
      events.on(`run:${outcome}`, ({ run, durationMs }) => this.#ended(outcome, run, durationMs))
    }
    events.on('run:stale', ({ run }) => {
      this.count('belfry_stale_settles_total', NO_LABELS)
      this.count('belfry_runs_total', { target: this.#label(targetName(run)), outcome: 'stale' })
    })
    events.on('runs:taken-over', ({ rescued, lost }) => {
      this.count('belfry_takeovers_total', { outcome: 'ready' }, rescued)
      this.count('belfry_takeovers_total', { outcome: 'lost' }, lost)
    })
    events.on('lock:lost', () => this.count('belfry_locks_lost_total', {}))
    events.on('instance:lost', () => this.count('belfry_leases_lost_total', {}))
    events.on('sink:unreachable', ({ sink }) => {
      this.count('belfry_sink_outages_total', { target: this.#label(sink) })
    })
    events.on('sink:recovered', ({ sink }) => {
      this.count('belfry_sink_recoveries_total', { target: this.#label(sink) })
    })
    events.on('store:unreachable', () => this.count('belfry_store_outages_total', {}))
  }

  count(name: string, labels: Labels, by = 1): void {
    const series = seriesOf(this.#counters, name, labels, () => 0)
    series.value += by
  }

  /** Has the series of these sinks begin at zero, so that the first outage is an increase. */
  expectSinks(names: Iterable<string>): void {
    for (const name of names) {
      const labels = { target: this.#label(name) }
      this.count('belfry_sink_outages_total', labels, 0)
      this.count('belfry_sink_recoveries_total', labels, 0)
    }
  }

  observe(name: string, labels: Labels, ms: number): void {
    record(seriesOf(this.#histograms, name, labels, emptyHistogram).value, ms)
  }

  /** For what is observed often: its series is found once. */
  observer(name: string, labels: Labels): (ms: number) => void {
    const { value } = seriesOf(this.#histograms, name, labels, emptyHistogram)
    return (ms) => record(value, ms)
  }

  counters(): readonly Sample<number>[] {
    return [...this.#counters.values()].map((series) => ({ ...series }))
  }

  histograms(): readonly Sample<Histogram>[] {
    return [...this.#histograms.values()].map(({ value, ...series }) => ({
      ...series,
      value: { ...value, buckets: [...value.buckets] },
    }))
  }

  /** Once for every run, so its series are found without making a key or labels each time. */
  #ended(outcome: Outcome, run: Run, durationMs: number): void {
    const target = this.#label(targetName(run))
    const known = this.#ends[outcome].get(target)
    const end = known ?? this.#newEnd(outcome, target)
    end.total.value += 1
    record(end.duration.value, durationMs)
  }

  /** The first so many have their own name. */
  #label(target: string): string {
    if (this.#targets.has(target)) return target
    if (this.#targets.size >= MAX_TARGETS) return OTHER
    this.#targets.add(target)
    return target
  }

  #newEnd(outcome: Outcome, target: string): End {
    const end = {
      total: seriesOf(this.#counters, 'belfry_runs_total', { target, outcome }, () => 0),
      duration: seriesOf(this.#histograms, 'belfry_run_duration_ms', { target }, emptyHistogram),
    }
    this.#ends[outcome].set(target, end)
    return end
  }
}

/** The store, with how long each operation on schedules, runs, leases, instances and records took and how many failed. */
export function measured(store: Store, metrics: Metrics, clock: Clock): Store {
  return eachOperation(store, (name, work) =>
    name.includes('.') ? timedOperation(work, { operation: name }, metrics, clock) : work,
  )
}

/** Whoever asks has the store's own promise: measuring costs him no turn. */
function timedOperation(work: Operation, labels: Labels, metrics: Metrics, clock: Clock): Operation {
  let observe: ((ms: number) => void) | undefined
  const answered = (startedAt: number) => {
    observe ??= metrics.observer('belfry_store_operation_ms', labels)
    observe(clock.monotonic() - startedAt)
  }
  return (...args) => {
    const startedAt = clock.monotonic()
    const answer = work(...args)
    answer.then(
      () => answered(startedAt),
      () => {
        answered(startedAt)
        metrics.count('belfry_store_errors_total', labels)
      },
    )
    return answer
  }
}

function seriesOf<Value>(
  all: Map<string, Series<Value>>,
  name: string,
  labels: Labels,
  empty: () => Value,
): Series<Value> {
  let key = name
  for (const label in labels) key += `|${labels[label]}`
  const known = all.get(key)
  if (known !== undefined) return known
  const made = { name, labels, value: empty() }
  all.set(key, made)
  return made
}

function record(histogram: MutableHistogram, ms: number): void {
  let bucket = 0
  while (bucket < BUCKETS_MS.length && ms > (BUCKETS_MS[bucket] as number)) bucket += 1
  histogram.buckets[bucket] = (histogram.buckets[bucket] ?? 0) + 1
  histogram.count += 1
  histogram.sum += ms
}

function emptyHistogram(): MutableHistogram {
  return { buckets: new Array<number>(BUCKETS_MS.length + 1).fill(0), count: 0, sum: 0 }
}

function targetName({ target }: Run): string {
  return 'job' in target ? target.job : target.sink
}
