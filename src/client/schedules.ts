import type { OperationResource } from '../server/shapes/operation.js'
import type { ApplyRequest, BackfillRequest, PreviewRequest, TriggerRequest } from '../server/shapes/requests.js'
import type { EnqueueOutcome } from '../server/shapes/run.js'
import type {
  NewSchedule,
  ScheduleFields,
  ScheduleLine,
  SchedulePatch,
  ScheduleResource,
} from '../server/shapes/schedule.js'
import type {
  ApplyResult,
  BackfillResult,
  Explanation,
  ImportProgress,
  ImportResult,
  Preview,
  Ticks,
} from '../server/shapes/schedule-answers.js'
import { importLines, importPart } from './import-lines.js'
import { OperationClient, type WaitOptions } from './operations.js'
import { type Page, type Paging, pagesOf } from './pages.js'
import { type Requests, segment } from './request.js'
import { ServiceError } from './service-error.js'

export interface ScheduleQuery extends Paging {
  readonly prefix?: string
  readonly state?: ScheduleResource['state']
  readonly job?: string
  readonly to?: string
  /** Adds the outcomes of the newest runs of each schedule. A page then has at most 100 schedules. */
  readonly recent?: boolean
}

/** A version that the schedule must still have; 0 if it must not exist yet. */
export interface VersionOptions {
  readonly ifVersion?: number
}

/** Requests with the same key and content take effect once. */
export interface IdempotencyOptions {
  readonly idempotencyKey?: string
}

type Moment = string | number

const ROOT = '/v1/schedules'

export class ScheduleClient {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  list(query: ScheduleQuery = {}): Promise<Page<ScheduleResource>> {
    return this.#requests.json(ROOT, { query: { ...query } })
  }

  all(query: Omit<ScheduleQuery, 'cursor'> = {}): AsyncGenerator<ScheduleResource> {
    return pagesOf((paging) => this.list({ ...query, ...paging }))
  }

  create(schedule: NewSchedule, { idempotencyKey }: IdempotencyOptions = {}): Promise<ScheduleResource> {
    const headers = { 'idempotency-key': idempotencyKey }
    return this.#requests.json(ROOT, { method: 'POST', body: schedule, headers })
  }

  get(id: string): Promise<ScheduleResource | undefined> {
    return this.#requests.found(pathOf(id))
  }

  put(id: string, schedule: ScheduleFields, options: VersionOptions = {}): Promise<ScheduleResource> {
    return this.#requests.json(pathOf(id), { method: 'PUT', body: schedule, headers: condition(options) })
  }

  /** Changes some fields; null removes one. */
  patch(id: string, changes: SchedulePatch, options: VersionOptions = {}): Promise<ScheduleResource> {
    return this.#requests.json(pathOf(id), { method: 'PATCH', body: changes, headers: condition(options) })
  }

  async remove(id: string, options: VersionOptions = {}): Promise<void> {
    await this.#requests.send(pathOf(id), { method: 'DELETE', headers: condition(options) })
  }

  pause(id: string, note?: string): Promise<ScheduleResource> {
    return this.#requests.json(pathOf(id, 'pause'), { method: 'POST', body: note === undefined ? {} : { note } })
  }

  /** The note goes to the audit trail. */
  resume(id: string, note?: string): Promise<ScheduleResource> {
    return this.#requests.json(pathOf(id, 'resume'), { method: 'POST', body: note === undefined ? {} : { note } })
  }

  trigger(id: string, options: TriggerRequest & IdempotencyOptions = {}): Promise<EnqueueOutcome> {
    const { idempotencyKey, ...body } = options
    const headers = { 'idempotency-key': idempotencyKey }
    return this.#requests.json(pathOf(id, 'trigger'), { method: 'POST', body, headers })
  }

  /** Starts a backfill, and waits until all its runs are enqueued. */
  async backfill(id: string, range: BackfillRequest, options: WaitOptions = {}): Promise<BackfillResult> {
    const answer = await this.#requests.send(pathOf(id, 'backfill'), { method: 'POST', body: range })
    if (answer.status !== 202) return (await answer.json()) as BackfillResult
    const started = (await answer.json()) as OperationResource
    options.onProgress?.(started)
    const { state, counts, error } = await new OperationClient(this.#requests).wait(started.id, options)
    if (state === 'succeeded') return { ...{ enqueued: 0, duplicates: 0, busy: 0 }, ...counts, runs: [] }
    const detail = error?.message ?? `the backfill was ${state}; a repetition adds only what is missing`
    throw new ServiceError({ status: 409, code: error?.code ?? 'OPERATION_ENDED', detail })
  }

  /** Explains the tick at an instant. Default the newest past tick. */
  explain(id: string, at?: Moment): Promise<Explanation> {
    return this.#requests.json(pathOf(id, 'explain'), { query: { at } })
  }

  ticks(id: string, range: { readonly from: Moment; readonly to: Moment; readonly limit?: number }): Promise<Ticks> {
    return this.#requests.json(pathOf(id, 'ticks'), { query: { ...range } })
  }

  preview(of: PreviewRequest): Promise<Preview> {
    return this.#requests.json(`${ROOT}:preview`, { method: 'POST', body: of })
  }

  apply(wanted: ApplyRequest): Promise<ApplyResult> {
    return this.#requests.json(`${ROOT}:apply`, { method: 'POST', body: wanted })
  }

  /** Sends any number of schedules in parts. To resume an interrupted import, give the same name and a `firstLine`. */
  import(
    lines: Iterable<ScheduleLine> | AsyncIterable<ScheduleLine>,
    options: { readonly name?: string; readonly firstLine?: number; readonly signal?: AbortSignal } = {},
  ): Promise<ImportResult> {
    return importLines(this.#requests, `${ROOT}:import`, lines, options)
  }

  /** Sends one part of an import as text: lines of JSON, each with its line break. */
  importPart(
    part: string,
    options: { readonly name?: string; readonly firstLine?: number; readonly signal?: AbortSignal } = {},
  ): Promise<ImportResult> {
    return importPart(this.#requests, `${ROOT}:import`, part, options)
  }

  importProgress(name: string): Promise<ImportProgress | undefined> {
    return this.#requests.found(`${ROOT}:import`, { query: { name } })
  }

  /** Streams schedules as lines of JSON, in the format of `import`. */
  async export(query: { readonly prefix?: string; readonly after?: string } = {}): Promise<ReadableStream<Uint8Array>> {
    const { body } = await this.#requests.send(`${ROOT}:export`, { query })
    return body ?? new Blob([]).stream()
  }
}

function pathOf(id: string, action?: string): string {
  return `${ROOT}/${segment(id)}${action === undefined ? '' : `/${action}`}`
}

function condition({ ifVersion }: VersionOptions): Record<string, string> {
  if (ifVersion === undefined) return {}
  return ifVersion === 0 ? { 'if-none-match': '*' } : { 'if-match': `"${ifVersion}"` }
}
