/** A typed client of the HTTP API, for Node and browsers. */
import type { AuditEntry } from '../server/shapes/audit.js'
import type { DoctorReport, FreezeState, InstanceResource, Stats } from '../server/shapes/store.js'
import { type EventOptions, type ServiceEvent, serviceEvents } from './events.js'
import { LockClient } from './locks.js'
import { OperationClient } from './operations.js'
import type { Page, Paging } from './pages.js'
import { type ClientOptions, Requests } from './request.js'
import { JobClient, RunClient, SinkClient } from './runs.js'
import { ScheduleClient } from './schedules.js'

export type { AuditEntry } from '../server/shapes/audit.js'
export type { ProcessEvent } from '../server/shapes/event.js'
export type { LeaseResource, LockResource } from '../server/shapes/lock.js'
export type { NewOperation, OperationResource } from '../server/shapes/operation.js'
export type {
  ApplyRequest,
  BackfillRequest,
  LockRenewal,
  LockRequest,
  NewDelivery,
  NewRun,
  PreviewRequest,
  RunSelection,
  TriggerRequest,
} from '../server/shapes/requests.js'
export type { EnqueueOutcome, ManyRunsResult, RunLog, RunResource, RunSummary } from '../server/shapes/run.js'
export type {
  NewSchedule,
  ScheduleFields,
  ScheduleLine,
  SchedulePatch,
  ScheduleResource,
} from '../server/shapes/schedule.js'
export type {
  ApplyResult,
  BackfillResult,
  Explanation,
  ImportLineError,
  ImportProgress,
  ImportResult,
  Preview,
  Ticks,
} from '../server/shapes/schedule-answers.js'
export type {
  DoctorReport,
  FreezeState,
  InstanceResource,
  JobResource,
  Stats,
} from '../server/shapes/store.js'
export type { EventOptions, ServiceEvent } from './events.js'
export type { LockClient } from './locks.js'
export type { OperationClient, WaitOptions } from './operations.js'
export type { Page, Paging } from './pages.js'
export type { ClientOptions } from './request.js'
export type { JobClient, RunClient, RunQuery, SinkClient } from './runs.js'
export type { IdempotencyOptions, ScheduleClient, ScheduleQuery, VersionOptions } from './schedules.js'
export { type Problem, ServiceError } from './service-error.js'

export class BelfryClient {
  readonly schedules: ScheduleClient
  readonly runs: RunClient
  readonly jobs: JobClient
  readonly sinks: SinkClient
  readonly locks: LockClient
  readonly operations: OperationClient
  readonly #requests: Requests

  /** Use `createClient`. */
  constructor(options: ClientOptions) {
    this.#requests = new Requests(options)
    this.schedules = new ScheduleClient(this.#requests)
    this.runs = new RunClient(this.#requests)
    this.jobs = new JobClient(this.#requests)
    this.sinks = new SinkClient(this.#requests)
    this.locks = new LockClient(this.#requests)
    this.operations = new OperationClient(this.#requests)
  }

  instances(): Promise<Page<InstanceResource>> {
    return this.#requests.json('/v1/instances')
  }

  stats(): Promise<Stats> {
    return this.#requests.json('/v1/stats')
  }

  /** Checks of the store and its instances, each finding with a fix. */
  doctor(): Promise<DoctorReport> {
    return this.#requests.json('/v1/doctor')
  }

  frozen(): Promise<FreezeState> {
    return this.#requests.json('/v1/freeze')
  }

  /** Stops all runs from starting. */
  freeze(note?: string): Promise<FreezeState> {
    return this.#requests.json('/v1/freeze', { method: 'PUT', body: note === undefined ? {} : { note } })
  }

  thaw(): Promise<FreezeState> {
    return this.#requests.json('/v1/freeze', { method: 'DELETE' })
  }

  /** Newest first. */
  audit(paging: Paging = {}): Promise<Page<AuditEntry>> {
    return this.#requests.json('/v1/audit', { query: { ...paging } })
  }

  /** Events as they happen, until the signal fires or the loop ends. Reconnects by itself. */
  events(options: EventOptions = {}): AsyncGenerator<ServiceEvent> {
    return serviceEvents(this.#requests, options)
  }
}

export function createClient(options: ClientOptions): BelfryClient {
  return new BelfryClient(options)
}
