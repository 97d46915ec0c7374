/**
 * Every metric of a process, declared once and in the order of the metrics page. Counting, the page
 * (`server/shapes/metrics-page.ts`) and the table in docs/service.md derive from this table.
 */
interface Metric {
  readonly kind: 'gauge' | 'counter' | 'histogram'
  readonly labels: readonly string[]
  readonly help: string
}

export const METRICS = {
  belfry_up: { kind: 'gauge', labels: [], help: 'This process answers.' },
  belfry_store_up: { kind: 'gauge', labels: [], help: 'The store answered this scrape.' },
  belfry_instances: { kind: 'gauge', labels: [], help: 'Live instances of the store.' },
  belfry_frozen: { kind: 'gauge', labels: [], help: 'Starting runs is stopped for the whole store.' },
  belfry_backlog_runs: {
    kind: 'gauge',
    labels: [],
    help: 'Due runs of the store that have not begun, counted up to 2,000 for each job, sink and priority.',
  },
  belfry_waiting_runs: {
    kind: 'gauge',
    labels: [],
    help: 'Runs that wait for a key, for an earlier run, or for an instance that has their job, up to a bound.',
  },
  belfry_backlog_is_more: { kind: 'gauge', labels: [], help: 'The backlog is larger than its count.' },
  belfry_ticks_recorded_total: { kind: 'counter', labels: [], help: 'Ticks that this process recorded.' },
  belfry_ticks_skipped_total: { kind: 'counter', labels: [], help: 'Ticks that this process recorded as skipped.' },
  belfry_claims_total: { kind: 'counter', labels: [], help: 'Attempts that this process began.' },
  belfry_runs_total: {
    kind: 'counter',
    labels: ['target', 'outcome'],
    help: 'Attempts that ended in this process: succeeded, failed, retrying, cancelled, released, stale.',
  },
  belfry_stale_settles_total: {
    kind: 'counter',
    labels: [],
    help: 'Attempts that another instance had taken over before they could settle.',
  },
  belfry_takeovers_total: {
    kind: 'counter',
    labels: ['outcome'],
    help: 'Runs of dead instances that this process took over: ready again, or lost for good.',
  },
  belfry_locks_lost_total: { kind: 'counter', labels: [], help: 'Locks that this process lost while it held them.' },
  belfry_leases_lost_total: {
    kind: 'counter',
    labels: [],
    help: 'Times that this process was declared dead, and lost all it held.',
  },
  belfry_sink_outages_total: {
    kind: 'counter',
    labels: ['target'],
    help: 'Times that this process could not reach a sink.',
  },
  belfry_sink_recoveries_total: {
    kind: 'counter',
    labels: ['target'],
    help: 'Outages of a sink that are over: one fewer than outages while one lasts.',
  },
  belfry_store_errors_total: { kind: 'counter', labels: ['operation'], help: 'Operations of the store that failed.' },
  belfry_store_outages_total: { kind: 'counter', labels: [], help: 'Times that the store was unreachable.' },
  belfry_run_lateness_ms: { kind: 'histogram', labels: [], help: 'How long after its instant a run began.' },
  belfry_run_duration_ms: { kind: 'histogram', labels: ['target'], help: 'How long attempts took.' },
  belfry_event_loop_delay_ms: {
    kind: 'histogram',
    labels: [],
    help: 'How late the event loop comes to a timer, measured twice a second.',
  },
  belfry_store_operation_ms: {
    kind: 'histogram',
    labels: ['operation'],
    help: 'How long operations of the store took.',
  },
} as const satisfies Readonly<Record<string, Metric>>

export type MetricKind = Metric['kind']

export type MetricName<Kind extends MetricKind = MetricKind> = {
  [Name in keyof typeof METRICS]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never
}[keyof typeof METRICS]

export type LabelsOf<Name extends MetricName> = Readonly<Record<(typeof METRICS)[Name]['labels'][number], string>>

export function metricNames<Kind extends MetricKind>(kind: Kind): readonly MetricName<Kind>[] {
  return (Object.keys(METRICS) as MetricName[]).filter((name): name is MetricName<Kind> => METRICS[name].kind === kind)
}

/** Prometheus wants base units: histograms measure milliseconds, and the page prints seconds. */
export function nameOnPage(name: MetricName): string {
  return name.replace(/_ms$/, '_seconds')
}
