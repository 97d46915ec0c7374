/**
 * Imports schedules line by line in batches, at constant memory: while the store writes one batch, the next is read.
 *
 * The library validates each line. Valid lines are written, and invalid ones are reported with the library's message. The
 * request's shape adds a JSON pointer to each field that it refuses too.
 *
 * `taken` counts the lines before the first that is neither written nor reported. A client whose connection broke sends the
 * lines from there on. Sending lines twice is safe: a schedule equal to the stored one writes nothing.
 *
 *     lines 1–1000    lines 1001–2000    lines 2001–3000
 *     counted         being written      being read
 */
import type { PutRefusal } from '../../api/schedules/put-many.js'
import type { PutOutcome } from '../../api/schedules/put-outcome.js'
import type { ScheduleFields } from '../../api/schedules/schedule-input.js'
import type { Belfry } from '../../belfry.js'
import { BelfryError } from '../../core/errors.js'
import { breather } from '../../core/in-turns.js'
import { parseJson } from '../http/json-body.js'
import { type FieldError, fieldErrors, Problem, pointerOf, problem } from '../http/problem.js'
import type { Caller } from '../security/caller.js'
import { mustUseNamed } from '../security/targets.js'
import type { Usage } from '../security/usage.js'
import { mayMake, visibleError } from '../security/visibility.js'
import { plainDurationMs, refuseDigits } from '../shapes/fields.js'
import { scheduleId, scheduleInput } from '../shapes/schedule.js'
import { putWithin } from './put-within.js'

/** The maximum of lines in a batch. */
const BATCH = 1_000
/** The maximum of characters in a batch, so that long lines do not use more memory. */
const BATCH_LENGTH = 1_048_576
const MAX_ERRORS = 1_000

export interface ImportLineError {
  readonly line: number
  readonly id?: string
  readonly code: string
  readonly message: string
  readonly errors?: readonly FieldError[]
}

export interface ImportCounts {
  /** Leading lines of this body that were written or reported. */
  readonly taken: number
  readonly created: number
  readonly updated: number
  readonly unchanged: number
  readonly refused: number
}

interface Line {
  readonly line: number
  readonly id: string
  readonly fields: ScheduleFields
}

interface Batch {
  readonly lines: Line[]
  readonly ids: Set<string>
  /** How many lines the body has up to the end of this batch. */
  upTo: number
  readonly errors: ImportLineError[]
  length: number
}

export class LineImport {
  readonly #belfry: Belfry
  readonly #usage: Usage
  readonly #caller: Caller
  /** The number of the body's first line in the whole import: more than 1 when the client resumes. */
  readonly #first: number
  /** The longest line in characters. */
  readonly #maxLine: number
  readonly errors: ImportLineError[] = []
  #counts = { taken: 0, created: 0, updated: 0, unchanged: 0, refused: 0 }
  #read = 0
  #batch = emptyBatch()
  #writing: { readonly done: Promise<void>; readonly ids: ReadonlySet<string> } | undefined

  constructor(belfry: Belfry, usage: Usage, caller: Caller, first: number, maxLine: number) {
    this.#belfry = belfry
    this.#usage = usage
    this.#caller = caller
    this.#first = first
    this.#maxLine = maxLine
  }

  get counts(): ImportCounts {
    return this.#counts
  }

  /** Adds a line. Resolves when there is room for another. */
  async take(text: string): Promise<void> {
    this.#read += 1
    this.#batch.upTo = this.#read
    this.#batch.length += text.length
    if (text.trim() !== '') this.#collect(text)
    const { lines, errors, length } = this.#batch
    if (lines.length + errors.length >= BATCH || length >= BATCH_LENGTH) await this.#flush()
  }

  /** Reports a line that could not be read. */
  async refuse(code: string, message: string): Promise<void> {
    this.#read += 1
    this.#batch.upTo = this.#read
    this.#batch.errors.push({ line: this.#first + this.#read - 1, code, message })
    if (this.#batch.errors.length >= BATCH) await this.#flush()
  }

  /** Resolves when all lines are written or reported. */
  async end(): Promise<void> {
    await this.#flush()
    await this.#writing?.done
  }

  /** Resolves when the batch being written has succeeded or failed. */
  async settle(): Promise<void> {
    await this.#writing?.done.catch(() => {})
  }

  #collect(text: string): void {
    const line = this.#first + this.#read - 1
    try {
      const { id, ...fields } = objectOf(parseJson(text, 'the line', this.#maxLine))
      const name = checkedId(id)
      mayMake(this.#caller, name)
      mustUseNamed(this.#caller, fields)
      const misread = misreadField(fields)
      if (misread !== undefined) this.#batch.errors.push(refusal({ line, id: name, fields }, misread))
      else this.#batch.lines.push({ line, id: name, fields })
      this.#batch.ids.add(name)
    } catch (error) {
      if (!(error instanceof BelfryError)) throw error
      const { errors } = error instanceof Problem ? error.options : {}
      this.#batch.errors.push({
        line,
        code: error.code,
        message: error.message,
        ...(errors === undefined ? {} : { errors }),
      })
    }
  }

  /** At most two batches are in flight. Two that share an id are written one after the other, so that the last line wins. */
  async #flush(): Promise<void> {
    const batch = this.#batch
    this.#batch = { ...emptyBatch(), upTo: this.#read }
    const before = this.#writing
    if (before !== undefined && [...batch.ids].some((id) => before.ids.has(id))) await before.done
    const written = this.#write(batch)
    const done = this.#countInOrder(before?.done, batch, written)
    done.catch(() => {})
    this.#writing = { done, ids: batch.ids }
    await before?.done
  }

  async #write({ lines }: Batch): Promise<readonly (PutOutcome | PutRefusal)[]> {
    if (lines.length === 0) return []
    const entries = lines.map(({ id, fields }) => [id, fields] as const)
    return putWithin(this.#belfry, this.#usage, this.#caller, entries)
  }

  #shown(error: BelfryError): BelfryError {
    const shown = visibleError(this.#caller, error)
    return shown instanceof BelfryError ? shown : error
  }

  async #countInOrder(
    before: Promise<void> | undefined,
    batch: Batch,
    written: Promise<readonly (PutOutcome | PutRefusal)[]>,
  ): Promise<void> {
    const [, results] = await Promise.all([before, written])
    const errors = [...batch.errors]
    let refused = errors.length
    const breathe = breather()
    for (const [at, result] of results.entries()) {
      if (result.outcome !== 'refused') this.#counts[result.outcome] += 1
      else if (this.errors.length >= MAX_ERRORS) refused += 1
      else refused = errors.push(refusal(batch.lines[at] as Line, this.#shown(result.error)))
      await breathe()
    }
    this.#counts.refused += refused
    this.#counts.taken = batch.upTo
    errors.sort((one, other) => one.line - other.line)
    this.errors.push(...errors.slice(0, MAX_ERRORS - this.errors.length))
  }
}

function emptyBatch(): Batch {
  return { lines: [], ids: new Set(), upTo: 0, errors: [], length: 0 }
}

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw problem(422, 'BODY_INVALID', 'the line is not an object: write {"id": "…", "cron": "…", "job": "…"}')
}

function checkedId(id: unknown): string {
  const checked = scheduleId.safeParse(id)
  if (checked.success) return checked.data
  throw problem(422, 'NAME_INVALID', `id: ${checked.error.issues[0]?.message ?? 'it is not allowed'}`)
}

/** What the library accepts from code, and the API does not: a job object, and numbers that look like seconds. */
export function misreadField({ job, every, deadline, jitter, missed, at, startsAt, endsAt }: ScheduleFields) {
  if (typeof job === 'object' && job !== null && !Array.isArray(job)) {
    return problem(422, 'BODY_INVALID', 'job: it must be the name of a job')
  }
  const within = typeof missed === 'object' && missed !== null ? missed.within : undefined
  const instants: readonly unknown[] = [...(Array.isArray(at) ? at : [at]), startsAt, endsAt]
  try {
    for (const given of [every, deadline, jitter, within]) if (typeof given === 'number') plainDurationMs(given)
    for (const given of instants) if (typeof given === 'string') refuseDigits(given)
    return undefined
  } catch (error) {
    if (error instanceof BelfryError) return error
    throw error
  }
}

/** The code and message come from the library; the shape adds a pointer to each invalid field. */
function refusal({ line, id, fields }: Line, error: BelfryError): ImportLineError {
  const { code, message, path } = error
  const checked = scheduleInput.safeParse(fields)
  if (!checked.success) return { line, id, code, message, errors: fieldErrors(checked.error) }
  return {
    line,
    id,
    code,
    message,
    ...(path === undefined ? {} : { errors: [{ pointer: pointerOf(path), message, code }] }),
  }
}
