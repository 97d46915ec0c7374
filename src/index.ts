export type { BelfryOptions, ThreadOptions } from './api/belfry-options.js'
export type { BoundedCount, Stats } from './api/health/stats.js'
export type { EnqueueOptions, EnqueueOutcome, SinkChoice } from './api/jobs/enqueue.js'
export type { Job } from './api/jobs/job.js'
export type { ExclusiveOption, ExclusiveOptions, JobOptions } from './api/jobs/job-options.js'
export type { KnownJob } from './api/jobs/known-jobs.js'
export type { StandardSchema } from './api/jobs/standard-schema.js'
export type { Lock } from './api/locks/lock.js'
export type { LockOptions } from './api/locks/lock-options.js'
export type { Locks } from './api/locks/locks.js'
export type { GrantOptions, GrantRef } from './api/locks/remote-leases.js'
export type { StopSignal } from './api/process-signals.js'
export type { ManyRuns, ManyRunsResult } from './api/runs/change-many.js'
export type { RunEvent } from './api/runs/run-feed.js'
export type { RunFilter, Runs } from './api/runs/runs.js'
export type { ApplyChange, ApplyOptions, ApplyResult } from './api/schedules/apply.js'
export type { ExplainOptions, Explanation } from './api/schedules/explain.js'
export type { PreviewOptions } from './api/schedules/preview.js'
export type { PutManyOptions, PutRefusal } from './api/schedules/put-many.js'
export type { PutOutcome } from './api/schedules/put-outcome.js'
export type { RecentRuns } from './api/schedules/recent-runs.js'
export type { ScheduleFilter } from './api/schedules/schedule-arguments.js'
export type {
  CronTimeline,
  InstantsTimeline,
  IntervalTimeline,
  JobTarget,
  MissedOptions,
  ScheduleFields,
  ScheduleInput,
  ScheduleOptions,
  SinkTarget,
} from './api/schedules/schedule-input.js'
export type { ScheduleView } from './api/schedules/schedule-view.js'
export type {
  AddOptions,
  BackfillOptions,
  PreviewedTick,
  PutOptions,
  SchedulePatch,
  Schedules,
  TriggerOptions,
} from './api/schedules/schedules.js'
export type { Tick, Ticks, TicksOptions } from './api/schedules/ticks.js'
export type { UnreachableSink } from './api/sinks/unreachable-sinks.js'
export * from './api/time/index.js'
export { type Belfry, createBelfry } from './belfry.js'
export type { Json } from './core/checks/json.js'
export type { Clock } from './core/clock.js'
export type { Check } from './core/diagnosis.js'
export { type ErrorCode, type ErrorRecord, LockLostError, NonRetryableError } from './core/errors.js'
export type { EngineRole, Instance } from './core/instances/instance.js'
export type { Lease } from './core/locks/lease.js'
export { type Logger, silentLogger } from './core/logger.js'
export type { MissedPolicy, OnFinish, Overlap, SkipReason, WhenBusy } from './core/policies.js'
export type { Message } from './core/runs/event.js'
export type { RetryOptions } from './core/runs/retry-policy.js'
export type { Keep, Run, RunState } from './core/runs/run.js'
export type { Schedule, ScheduleDefinition, ScheduleState } from './core/schedules/schedule.js'
export {
  DELIVERED,
  type Delivered,
  type Delivery,
  type DeliveryOptions,
  type Sink,
  type SinkMessage,
  type Undelivered,
} from './core/sink.js'
export type {
  CancelResult,
  CountQuery,
  Frozen,
  Page,
  RecordStore,
  RunQuery,
  ScheduleQuery,
  Store,
} from './core/store.js'
export type { HandlerContext, RunInfo, ThreadContext } from './engine/definitions.js'
export type { EventMap, EventName } from './engine/events.js'
export { HISTOGRAM_BUCKETS_MS, type Histogram, type MetricSample, type Metrics } from './engine/metrics/metrics.js'
