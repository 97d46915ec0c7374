/**
 * Takes schedules line by line, in batches, at constant memory: while the store writes one batch the next is read and
 * checked. Lines that are refused are reported and the others are written.
 *
 * `taken` counts lines up to which everything has been written or reported, so that whoever was cut off can send the rest.
 * Sending lines again does no harm: what is equal to what is there writes nothing.
 */
import type { z } from 'zod'
import type { PutRefusal } from '../../api/schedules/put-many.js'
import type { PutOutcome } from '../../api/schedules/put-outcome.js'
import type { ScheduleInput } from '../../api/schedules/schedule-input.js'
import type { Belfry } from '../../belfry.js'
import { BelfryError } from '../../core/errors.js'
import { parseJson } from '../http/json-body.js'
import { type FieldError, fieldErrors, invalidBody, problem } from '../http/problem.js'
import { type Caller, mayMake } from '../security/caller.js'
import { isForLibrary, scheduleId, scheduleLine } from '../shapes/schedule.js'

const BATCH = 1_000
/** Of text: long lines come in smaller batches, so that they do not pile up. */
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
  /** Lines of this body that are done with. */
  readonly taken: number
  readonly created: number
  readonly updated: number
  readonly unchanged: number
  readonly refused: number
}

interface Line {
  readonly line: number
  readonly id: string
  readonly fields: ScheduleInput
}

interface Batch {
  readonly lines: Line[]
  readonly ids: Set<string>
  /** How many lines there were up to its end. */
  upTo: number
  readonly errors: ImportLineError[]
  length: number
}

export class ScheduleImport {
  readonly #belfry: Belfry
  readonly #caller: Caller
  /** The number of the first line, for those who send the rest of something. */
  readonly #first: number
  readonly errors: ImportLineError[] = []
  #counts = { taken: 0, created: 0, updated: 0, unchanged: 0, refused: 0 }
  #read = 0
  #batch = emptyBatch()
  #writing: { readonly done: Promise<void>; readonly ids: ReadonlySet<string> } | undefined

  constructor(belfry: Belfry, caller: Caller, first: number) {
    this.#belfry = belfry
    this.#caller = caller
    this.#first = first
  }

  get counts(): ImportCounts {
    return this.#counts
  }

  /** Resolves when there is room for another. */
  async take(text: string): Promise<void> {
    this.#read += 1
    this.#batch.upTo = this.#read
    this.#batch.length += text.length
    if (text.trim() !== '') this.#collect(text)
    const { lines, errors, length } = this.#batch
    if (lines.length + errors.length >= BATCH || length >= BATCH_LENGTH) await this.#flush()
  }

  /** A line that cannot be taken at all. */
  async refuse(code: string, message: string): Promise<void> {
    this.#read += 1
    this.#batch.upTo = this.#read
    this.#batch.errors.push({ line: this.#first + this.#read - 1, code, message })
    if (this.#batch.errors.length >= BATCH) await this.#flush()
  }

  /** Resolves when everything that was taken is written. */
  async end(): Promise<void> {
    await this.#flush()
    await this.#writing?.done
  }

  /** Lets what is being written come to its end, whatever that is. */
  async settle(): Promise<void> {
    await this.#writing?.done.catch(() => {})
  }

  #collect(text: string): void {
    const line = this.#first + this.#read - 1
    try {
      const { id, ...fields } = objectOf(parseJson(text, 'the line'))
      const name = checkedId(id)
      mayMake(this.#caller, name)
      if (!isForLibrary(fields)) {
        const errors = shapeErrors(name, fields)
        const { code, message } = invalidBody(errors)
        return void this.#batch.errors.push({ line, id: name, code, message, errors })
      }
      this.#batch.lines.push({ line, id: name, fields })
      this.#batch.ids.add(name)
    } catch (error) {
      if (!(error instanceof BelfryError)) throw error
      this.#batch.errors.push({ line, code: error.code, message: error.message })
    }
  }

  /** Two batches are under way at the most, and two that meet in an id one after the other: the last line counts. */
  async #flush(): Promise<void> {
    const batch = this.#batch
    this.#batch = { ...emptyBatch(), upTo: this.#read }
    const before = this.#writing
    if (before !== undefined && [...batch.ids].some((id) => before.ids.has(id))) await before.done
    const written = this.#write(batch)
    const done = this.#inOrder(before?.done, batch, written)
    done.catch(() => {})
    this.#writing = { done, ids: batch.ids }
    await before?.done
  }

  async #write({ lines }: Batch): Promise<readonly (PutOutcome | PutRefusal)[]> {
    if (lines.length === 0) return []
    const entries = lines.map(({ id, fields }) => [id, fields] as const)
    return this.#belfry.schedules.putMany(entries, { whenRefused: 'skip' })
  }

  async #inOrder(
    before: Promise<void> | undefined,
    batch: Batch,
    written: Promise<readonly (PutOutcome | PutRefusal)[]>,
  ): Promise<void> {
    const [, results] = await Promise.all([before, written])
    const errors = [...batch.errors]
    let refused = errors.length
    for (const [at, result] of results.entries()) {
      if (result.outcome !== 'refused') this.#counts[result.outcome] += 1
      else if (this.errors.length >= MAX_ERRORS) refused += 1
      else refused = errors.push(refusal(batch.lines[at], result.error))
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
  throw problem(422, 'BODY_INVALID', 'the line is no object: write {"id": "…", "cron": "…", "job": "…"}')
}

function checkedId(id: unknown): string {
  const checked = scheduleId.safeParse(id)
  if (checked.success) return checked.data
  throw problem(422, 'NAME_INVALID', `id: ${checked.error.issues[0]?.message ?? 'it is not allowed'}`)
}

/** The library says that a line is wrong; the shape says where. */
function refusal(line: Line | undefined, error: BelfryError): ImportLineError {
  const { id = '', fields = {} } = line ?? {}
  const errors = shapeErrors(id, fields)
  return {
    ...{ line: line?.line ?? 0, id, code: error.code, message: error.message },
    ...(errors.length === 0 ? {} : { errors }),
  }
}

function shapeErrors(id: string, fields: object): readonly FieldError[] {
  const checked: z.ZodSafeParseResult<unknown> = scheduleLine.safeParse({ id, ...fields })
  return checked.success ? [] : fieldErrors(checked.error)
}
