/** Makes runs of a job by the job's name, whether this instance has the job's code or not. */

import { toJson } from '../../core/checks/json.js'
import { checkOptions } from '../../core/checks/known-options.js'
import { LIMITS } from '../../core/defaults.js'
import { failure } from '../../core/errors.js'
import { checkName } from '../../core/names/names.js'
import type { NewRun } from '../../core/runs/run.js'
import type { EnqueueResult } from '../../core/store.js'
import { type Duration, durationMs } from '../../time/duration.js'
import { type Instant, instantMs } from '../../time/instant.js'
import { located } from '../located.js'
import type { JobCatalogue } from './job-catalogue.js'

export interface EnqueueOptions {
  /** Start after a delay, by the store's clock. */
  readonly in?: Duration
  /** Start at an instant; one in the past starts now. */
  readonly at?: Instant
  /** The dedupe key: at most one unfinished run of this job has it. */
  readonly key?: string
  /** The dedupe key refuses repetitions for this long after the run has ended. */
  readonly keyFor?: Duration
  /** Higher starts first. Default 0. */
  readonly priority?: number
  /** The caller's transaction on the same database: the run becomes visible when it commits. */
  readonly tx?: unknown
}

/** A sink as the target of a run, with the fields that schedules have for it. */
export interface SinkChoice {
  readonly to: string
  /** Options for the sink: topic, headers, URL. */
  readonly toOptions?: unknown
}

/** `run` is the new run, or the existing run that kept it from being made. */
export interface EnqueueOutcome<Result = unknown> {
  readonly outcome: EnqueueResult['outcome']
  readonly run: RunId<Result>
}

/** The id of a run, as text. `Result` is what its job returns: `runs.wait()` reads it. */
export type RunId<Result = unknown> = string & { readonly '~result'?: Result }

/**
 * Checks the payload and computes the exclusive key. Both may need the job's code. An instance without the code leaves
 * the payload unchecked, and one that has the code stamps the key.
 */
export async function newRun(
  catalogue: JobCatalogue,
  job: string,
  payload: unknown,
  options: EnqueueOptions,
): Promise<NewRun> {
  const fields = enqueueFields(`enqueue of job "${job}"`, options)
  const stored = toJson(payload, `payload of job "${job}"`)
  const definition = catalogue.jobs.get(job)
  await definition?.parse?.(stored)
  const target = { job }
  const key = await catalogue.keyOf(target, stored, 'enqueue')
  const base = { target, origin: 'enqueue', payload: stored, keep: definition?.keep ?? 'all', ...fields } as const
  if (key === undefined) return base
  const rule = await catalogue.keyRule(target)
  const checkKey = rule !== undefined && rule !== 'unknown' && rule.checkOnEnqueue
  return { ...base, key, checkKey }
}

/** A run that a sink delivers, without a schedule. */
export async function newDelivery(
  catalogue: JobCatalogue,
  { to, toOptions }: SinkChoice,
  payload: unknown,
  options: EnqueueOptions,
): Promise<NewRun> {
  const sink = checkName(to, 'sink name')
  const where = `enqueue to sink "${sink}"`
  const fields = enqueueFields(where, options)
  const given = toOptions === undefined ? {} : { options: toJson(toOptions, `toOptions of an ${where}`) }
  const target = { sink, ...given }
  const { key } = await catalogue.sinks.check(where, target, undefined)
  const base = { target, origin: 'enqueue', payload: toJson(payload, `payload of an ${where}`), keep: 'all' } as const
  return { ...base, ...fields, ...(key === undefined ? {} : { key }) }
}

const KNOWN = ['in', 'at', 'key', 'keyFor', 'priority', 'tx']

function enqueueFields(where: string, options: EnqueueOptions) {
  checkOptions(options, KNOWN, where)
  const { in: delay, at, priority = 0 } = options
  if (delay !== undefined && at !== undefined) throw invalid(where, 'give `in` or `at`, not both')
  if (!Number.isInteger(priority) || Math.abs(priority) > LIMITS.priority) {
    throw invalid(where, `priority is ${String(priority)}; it must be a whole number of at most ${LIMITS.priority}`)
  }
  return located(where, () => ({
    priority,
    ...dedupeFields(where, options),
    ...(delay === undefined ? {} : { delayMs: durationMs(delay) }),
    ...(at === undefined ? {} : { readyAt: instantMs(at) }),
  }))
}

export function dedupeFields(where: string, { key, keyFor }: Pick<EnqueueOptions, 'key' | 'keyFor'>) {
  if (keyFor !== undefined && key === undefined) throw failure('OPTION_INVALID', `${where}: \`keyFor\` needs a \`key\``)
  return located(where, () => ({
    ...(key === undefined ? {} : { dedupe: checkName(key, 'enqueue key') }),
    ...(keyFor === undefined ? {} : { dedupeForMs: durationMs(keyFor) }),
  }))
}

function invalid(where: string, problem: string) {
  return failure('OPTION_INVALID', `${where}: ${problem}`)
}
