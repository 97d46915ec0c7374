export type { ApplyChange, ApplyOptions, ApplyResult } from './api/apply.js'
export type { Enqueued, EnqueueOptions } from './api/enqueue.js'
export type { Explanation } from './api/explain.js'
export type { GrantOptions, GrantRef } from './api/grant-options.js'
export type { Job } from './api/job.js'
export type { ExclusiveOptions, JobOptions } from './api/job-options.js'
export type { KnownJob } from './api/known-jobs.js'
export type { Lock } from './api/lock.js'
export type { LockOptions } from './api/lock-options.js'
export type { Locks } from './api/locks.js'
export type { ManyResult } from './api/many-runs.js'
export type { BelfryOptions, ThreadsOption } from './api/options.js'
export type { StopSignal } from './api/process-signals.js'
export type { EachResult } from './api/put-each.js'
export type { RunNews } from './api/run-feed.js'
export type { Runs } from './api/runs.js'
export type { MissedInput, ScheduleInput } from './api/schedule-input.js'
export type { ScheduleView } from './api/schedule-view.js'
export type {
  AddOptions,
  BackfillOptions,
  PreviewedTick,
  PutOptions,
  ScheduleChanges,
  Schedules,
  TriggerOptions,
  Written,
} from './api/schedules.js'
export type { StandardSchema } from './api/standard-schema.js'
export type { AtLeast, Stats } from './api/stats.js'
export type { Tick, Ticks, TicksOptions } from './api/ticks.js'
export { type Belfry, createBelfry } from './belfry.js'
export type { Clock } from './core/clock.js'
export { type ErrorCode, type ErrorRecord, LockLostError, NonRetryableError } from './core/errors.js'
export type { Message } from './core/event.js'
export type { Instance } from './core/instance.js'
export type { Json } from './core/json.js'
export type { Lease } from './core/lease.js'
export { type Logger, silentLogger } from './core/logger.js'
export type { Overlap, SkipReason } from './core/policies.js'
export type { RetryOptions } from './core/retry.js'
export type { Keep, Run, RunState } from './core/run.js'
export type { Schedule, ScheduleDefinition, ScheduleState } from './core/schedule.js'
export {
  DELIVERED,
  type Delivery,
  type DeliveryOptions,
  type Sink,
  type SinkMessage,
  type Undelivered,
} from './core/sink.js'
export type { Frozen, Page, RunQuery, ScheduleQuery, Store } from './core/store.js'
export type { Role } from './engine/engine.js'
export type { EventMap, EventName } from './engine/events.js'
export { BUCKETS_MS, type Histogram, type Metrics, type Sample } from './engine/metrics.js'
export type { HandlerContext, RunInfo, ThreadContext } from './engine/work.js'
export * from './time/index.js'
