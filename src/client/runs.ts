import type { NewDelivery, NewRun, RunSelection } from '../server/shapes/requests.js'
import type { EnqueueOutcome, ManyRunsResult, RunLog, RunResource } from '../server/shapes/run.js'
import type { JobResource } from '../server/shapes/store.js'
import { type Page, type Paging, pagesOf } from './pages.js'
import { type Requests, segment } from './request.js'
import type { IdempotencyOptions } from './schedules.js'

export interface RunQuery extends Paging {
  readonly schedule?: string
  readonly job?: string
  readonly to?: string
  readonly key?: string
  readonly state?: RunResource['state'] | readonly RunResource['state'][]
  readonly tick?: string | number
}

export class RunClient {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  /** Newest first. */
  list(query: RunQuery = {}): Promise<Page<RunResource>> {
    return this.#requests.json('/v1/runs', { query: { ...query } })
  }

  all(query: Omit<RunQuery, 'cursor'> = {}): AsyncGenerator<RunResource> {
    return pagesOf((paging) => this.list({ ...query, ...paging }))
  }

  get(id: string): Promise<RunResource | undefined> {
    return this.#requests.found(`/v1/runs/${segment(id)}`)
  }

  /** Undefined when the run has no log. */
  log(id: string): Promise<RunLog | undefined> {
    return this.#requests.found(`/v1/runs/${segment(id)}/log`)
  }

  cancel(id: string): Promise<{ readonly outcome: 'cancelled' | 'requested' | 'finished' }> {
    return this.#requests.json(`/v1/runs/${segment(id)}/cancel`, { method: 'POST', body: {} })
  }

  retry(id: string): Promise<RunResource> {
    return this.#requests.json(`/v1/runs/${segment(id)}/retry`, { method: 'POST', body: {} })
  }

  cancelMany(meant: RunSelection): Promise<ManyRunsResult> {
    return this.#requests.json('/v1/runs:cancel', { method: 'POST', body: meant })
  }

  retryMany(meant: RunSelection): Promise<ManyRunsResult> {
    return this.#requests.json('/v1/runs:retry', { method: 'POST', body: meant })
  }
}

export class JobClient {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  list(): Promise<Page<JobResource>> {
    return this.#requests.json('/v1/jobs')
  }

  enqueue(job: string, run: NewRun & IdempotencyOptions = {}): Promise<EnqueueOutcome> {
    const { idempotencyKey, ...body } = run
    const headers = { 'idempotency-key': idempotencyKey }
    return this.#requests.json(`/v1/jobs/${segment(job)}/runs`, { method: 'POST', body, headers })
  }
}

export class SinkClient {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  /** Delivers one event, without a schedule. */
  enqueue(sink: string, run: NewDelivery & IdempotencyOptions = {}): Promise<EnqueueOutcome> {
    const { idempotencyKey, ...body } = run
    const headers = { 'idempotency-key': idempotencyKey }
    return this.#requests.json(`/v1/sinks/${segment(sink)}/runs`, { method: 'POST', body, headers })
  }
}
