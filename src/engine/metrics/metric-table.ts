/**
 * Declares every metric of a process, in the order of the metrics page. Counting, the page
 * (`server/shapes/metrics-page.ts`) and the table in docs/service.md derive from this table.
 */
interface Metric {
  readonly kind: 'gauge' | 'counter' | 'histogram'
  readonly labels: readonly string[]
  readonly help: string
}

function metric<Kind extends Metric['kind'], const Labels extends readonly string[]>(
  kind: Kind,
  labels: Labels,
  help: string,
) {
  return { kind, labels, help }
}

export const METRICS = {
  belfry_up: metric('gauge', [], 'This process answers.'),
  belfry_store_up: metric('gauge', [], 'The store answered this scrape.'),
  belfry_instances: metric('gauge', [], 'Live instances of the store.'),
  belfry_frozen: metric('gauge', [], 'Starting runs is stopped for the whole store.'),
  belfry_backlog_runs: metric(
    'gauge',
    [],
    'Due runs of the store that have not begun, counted up to 2,000 for each job, sink and priority.',
  ),
  belfry_waiting_runs: metric(
    'gauge',
    [],
    'Runs that wait for a key, for an earlier run, or for an instance that has their job, up to a bound.',
  ),
  belfry_backlog_is_more: metric('gauge', [], 'The backlog is larger than its count.'),
  belfry_ticks_recorded_total: metric('counter', [], 'Ticks that this process recorded.'),
  belfry_ticks_skipped_total: metric('counter', [], 'Ticks that this process recorded as skipped.'),
  belfry_claims_total: metric('counter', [], 'Attempts that this process began.'),
  belfry_runs_total: metric(
    'counter',
    ['target', 'outcome'],
    'Attempts that ended in this process: succeeded, failed, retrying, cancelled, released, stale.',
  ),
  belfry_runs_skipped_total: metric(
    'counter',
    ['target', 'reason'],
    'Runs that this process skipped instead of starting them: busy, deadline, missed.',
  ),
  belfry_stale_settles_total: metric(
    'counter',
    [],
    'Attempts that another instance had taken over before they could settle.',
  ),
  belfry_takeovers_total: metric(
    'counter',
    ['outcome'],
    'Runs of dead instances that this process took over: ready again, or lost for good.',
  ),
  belfry_locks_lost_total: metric('counter', [], 'Locks that this process lost while it held them.'),
  belfry_leases_lost_total: metric('counter', [], 'Times that this process was declared dead, and lost all it held.'),
  belfry_sink_outages_total: metric('counter', ['target'], 'Times that this process could not reach a sink.'),
  belfry_sink_recoveries_total: metric(
    'counter',
    ['target'],
    'Outages of a sink that are over: one fewer than outages while one lasts.',
  ),
  belfry_store_errors_total: metric('counter', ['operation'], 'Operations of the store that failed.'),
  belfry_store_outages_total: metric('counter', [], 'Times that the store was unreachable.'),
  belfry_run_lateness_ms: metric('histogram', [], 'How long after its instant a run began.'),
  belfry_run_duration_ms: metric('histogram', ['target'], 'How long attempts took.'),
  belfry_event_loop_delay_ms: metric(
    'histogram',
    [],
    'How late the event loop comes to a timer, measured twice a second.',
  ),
  belfry_store_operation_ms: metric('histogram', ['operation'], 'How long operations of the store took.'),
} satisfies Readonly<Record<string, Metric>>

export type MetricKind = Metric['kind']

export type MetricName<Kind extends MetricKind = MetricKind> = {
  [Name in keyof typeof METRICS]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never
}[keyof typeof METRICS]

export type LabelsOf<Name extends MetricName> = Readonly<Record<(typeof METRICS)[Name]['labels'][number], string>>

export function metricNames<Kind extends MetricKind>(kind: Kind): readonly MetricName<Kind>[] {
  return (Object.keys(METRICS) as MetricName[]).filter((name): name is MetricName<Kind> => METRICS[name].kind === kind)
}

/** Histograms measure milliseconds, and the page prints seconds: Prometheus asks for base units. */
export function nameOnPage(name: MetricName): string {
  return name.replace(/_ms$/, '_seconds')
}
