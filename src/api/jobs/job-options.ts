import type { Json } from '../../core/checks/json.js'
import { checkOptions } from '../../core/checks/known-options.js'
import { DEFAULTS, LIMITS } from '../../core/defaults.js'
import { failure, quote } from '../../core/errors.js'
import { checkName } from '../../core/names/names.js'
import { WHEN_BUSY, type WhenBusy } from '../../core/policies.js'
import type { KeyRule } from '../../core/runs/key.js'
import type { RetryOptions } from '../../core/runs/retry-policy.js'
import { KEEPS, type Keep } from '../../core/runs/run.js'
import type { Exclusive, HandlerContext, JobDefinition } from '../../engine/definitions.js'
import { type Duration, durationMs } from '../../time/duration.js'
import { located } from '../located.js'
import type { PathOf } from './payload-path.js'
import { parseRetry } from './retry-options.js'
import { type StandardSchema, validate } from './standard-schema.js'

/** `Path` is what `exclusive.by` may name. */
export interface JobOptions<Payload, Result = unknown, Tx = unknown, Path extends string = PathOf<Payload>> {
  /**
   * The handler. Its return value (JSON) is the run's result. After an error the run is retried, or fails. For CPU-bound
   * work give a URL, `new URL('./resize.js', import.meta.url)`: the module's default export then runs in a thread.
   */
  readonly run: ((context: HandlerContext<Payload, Tx>) => Result | Promise<Result>) | URL
  readonly exclusive?: ExclusiveOption<Payload, Path>
  readonly retry?: RetryOptions
  /** How long one attempt may take before its signal fires. Default one hour. */
  readonly timeout?: Duration
  /** Which runs stay in the history. Default all. */
  readonly keep?: Keep
  /** How many attempts of this job one instance runs at a time. Default: only the instance's own limit. */
  readonly concurrency?: number
}

export type ExclusiveOption<Payload, Path extends string = PathOf<Payload>> =
  | boolean
  | ((payload: Payload) => unknown)
  | ExclusiveOptions<Payload, Path>

export interface ExclusiveOptions<Payload, Path extends string = PathOf<Payload>> {
  /** The part of the payload that is the key: property paths, or a function. Default the whole payload. */
  readonly by?: readonly NoInfer<Path>[] | ((payload: Payload) => unknown)
  /** The lock's name, to share it between jobs. */
  readonly name?: string
  /** How many runs of one key may run at a time. Default 1. */
  readonly limit?: number
  /**
   * What a run does when its key is busy: `skip`, or `wait` for its turn. By default ticks skip, and enqueues, triggers and
   * backfills wait: accepted work is dropped only when you write `skip`.
   */
  readonly whenBusy?: WhenBusy
  /** Refuse an enqueue while the key is taken. Default on with `whenBusy: 'skip'`, else off. */
  readonly checkOnEnqueue?: boolean
}

const JOB = DEFAULTS.job
const KNOWN = ['payload', 'run', 'exclusive', 'retry', 'timeout', 'keep', 'concurrency']
const KNOWN_EXCLUSIVE = ['by', 'name', 'limit', 'whenBusy', 'checkOnEnqueue']

export function parseJob<Payload>(
  name: string,
  options: JobOptions<Payload, unknown, unknown, string> & { readonly payload?: StandardSchema | undefined },
): JobDefinition {
  checkName(name, 'job name')
  checkOptions(options, KNOWN, `job "${name}"`)
  const { payload: schema } = options
  if (schema !== undefined && typeof schema?.['~standard']?.validate !== 'function') {
    throw invalid(name, 'payload must be a Standard Schema, such as one of zod, valibot or arktype')
  }
  checkHandler(name, options.run)
  const where = `job "${name}"`
  const timeoutMs = located(where, () => durationMs(options.timeout ?? JOB.timeoutMs))
  if (timeoutMs < 1) throw invalid(name, 'timeout must be longer than 0')
  const exclusive = parseExclusive(name, options.exclusive)
  return {
    name,
    run: options.run as JobDefinition['run'],
    ...(schema === undefined
      ? {}
      : { parse: (payload: Json) => parsePayload(schema, payload, `payload of job "${name}"`) }),
    retry: located(where, () => parseRetry(where, options.retry ?? {}, JOB.retry)),
    timeoutMs,
    keep: checkKeep(options.keep ?? JOB.keep, where),
    concurrency: checkCount(options.concurrency ?? Number.POSITIVE_INFINITY, name, 'concurrency'),
    ...(exclusive === undefined ? {} : { exclusive }),
  }
}

function checkHandler(job: string, run: unknown): void {
  if (typeof run === 'function') return
  if (!(run instanceof URL)) {
    const given = typeof run === 'string' ? `, not ${quote(run)}` : ''
    throw invalid(job, `run must be a function, or the URL of a module: new URL('./file.js', import.meta.url)${given}`)
  }
  if (run.protocol === 'file:') return
  throw invalid(job, `run is ${quote(run.href)}: only modules in files, with a URL that begins with file:, can run`)
}

/** An absent payload is stored as null. A schema that refuses null but accepts an absent payload gets `undefined`. */
async function parsePayload(schema: StandardSchema, payload: Json, what: string): Promise<unknown> {
  try {
    return await validate(schema, payload, what)
  } catch (error) {
    if (payload !== null) throw error
    const absent = await schema['~standard'].validate(undefined)
    if (absent.issues === undefined) return absent.value
    throw error
  }
}

export function checkKeep(keep: Keep, where: string): Keep {
  if (KEEPS.includes(keep)) return keep
  throw failure('OPTION_INVALID', `${where}: keep is ${quote(keep)}; allowed are ${KEEPS.join(', ')}`)
}

function parseExclusive<Payload>(
  job: string,
  option: ExclusiveOption<Payload, string> | undefined,
): Exclusive | undefined {
  if (option === undefined || option === false) return undefined
  const options: ExclusiveOptions<Payload, string> =
    typeof option === 'function' ? { by: option } : option === true ? {} : option
  checkOptions(options, KNOWN_EXCLUSIVE, `job "${job}": exclusive`)
  const { by, name, limit = JOB.exclusive.limit, whenBusy } = options
  const { checkOnEnqueue = whenBusy === 'skip' } = options
  if (whenBusy !== undefined && !WHEN_BUSY.includes(whenBusy))
    throw invalid(job, `exclusive.whenBusy is ${quote(whenBusy)}; allowed are ${WHEN_BUSY.join(' and ')}`)
  if (name !== undefined) checkName(name, 'exclusive.name')
  const rule: KeyRule = {
    limit: checkCount(limit, job, 'exclusive.limit', LIMITS.permits),
    checkOnEnqueue,
    ...(whenBusy === undefined ? {} : { whenBusy }),
    ...(name === undefined ? {} : { name }),
    ...(by === undefined ? {} : { by: typeof by === 'function' ? ('code' as const) : checkPaths(job, by) }),
  }
  return typeof by === 'function' ? { rule, by: by as (payload: unknown) => unknown } : { rule }
}

function checkPaths(job: string, paths: readonly string[]): readonly string[] {
  const good =
    Array.isArray(paths) && paths.length > 0 && paths.every((path) => typeof path === 'string' && path !== '')
  if (good) return paths
  throw invalid(job, 'exclusive.by must be a list of property paths such as ["region", "user.id"], or a function')
}

function checkCount(count: number, job: string, option: string, most = Number.POSITIVE_INFINITY): number {
  if (count >= 1 && count <= most && (Number.isInteger(count) || count === Number.POSITIVE_INFINITY)) return count
  const range = Number.isFinite(most) ? `from 1 to ${most}` : 'of at least 1'
  throw invalid(job, `${option} is ${quote(count)}; it must be a whole number ${range}`)
}

function invalid(job: string, problem: string) {
  return failure('OPTION_INVALID', `job "${job}": ${problem}`)
}
