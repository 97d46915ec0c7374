/** Cancels or retries all matching runs, one bounded page at a time. */
import { failure, quote } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import { FINISHED_STATES, type Run, type RunState, UNFINISHED_STATES } from '../../core/runs/run.js'
import { mayBecome } from '../../core/runs/transitions.js'
import type { CancelResult, RetryResult, RunQuery, Store } from '../../core/store.js'
import type { RunFilter } from './runs.js'

export interface ManyRunsResult {
  /** The runs that were changed, and running ones that were asked to cancel. */
  readonly changed: readonly string[]
  /** Runs that matched, but whose state no longer allows the change. */
  readonly refused: number
  /** The `after` of the next call; absent when no more runs match. */
  readonly next?: string
}

/** Which runs to change. Without a filter it must say `all: true`, because a variable that is undefined leaves its filter out. */
export type ManyRuns = RunFilter & {
  /** Every run whose state allows the change. */
  readonly all?: boolean
}

const MAX_LIMIT = 1_000
/** States do not choose runs: most runs have the same ones. */
const CHOOSING = ['schedule', 'job', 'to', 'key', 'tick'] as const
export const CANCELLABLE: readonly RunState[] = UNFINISHED_STATES
export const RETRYABLE: readonly RunState[] = FINISHED_STATES.filter((state) => mayBecome(state, 'ready'))

/** Refuses a query that means every run without saying so, and returns it without `all`. */
export function chosenRuns({ all = false, ...query }: ManyRuns, where: string): RunFilter {
  if (typeof all !== 'boolean') {
    throw failure('OPTION_INVALID', `${where}: all is ${quote(all)}; it must be true or false`)
  }
  const given = CHOOSING.filter((name) => query[name] !== undefined)
  if (all && given.length > 0) {
    throw failure(
      'OPTION_INVALID',
      `${where}: all: true means every run, and ${given.join(' and ')} only some: give one`,
    )
  }
  if (all || given.length > 0 || (query.prefix ?? '') !== '') return query
  throw failure(
    'OPTION_INVALID',
    `${where}: no run is named; give ${CHOOSING.join(', ')} or prefix, or all: true to mean every run`,
  )
}

export async function changeMany(
  store: Store,
  query: RunQuery,
  allowed: readonly RunState[],
  where: string,
  isMeant: (run: Run) => boolean,
  change: (id: string) => Promise<CancelResult | RetryResult>,
): Promise<ManyRunsResult> {
  if (query.limit > MAX_LIMIT) {
    throw failure('OPTION_INVALID', `${where}: limit is ${quote(query.limit)}; at most ${MAX_LIMIT} at a time`)
  }
  const states = query.states ?? allowed
  const stranger = states.find((state) => !allowed.includes(state))
  if (stranger !== undefined) {
    throw failure(
      'OPTION_INVALID',
      `${where}: runs that are ${stranger} cannot be changed so; ${allowed.join(', ')} can`,
    )
  }
  const { items, next } = await store.runs.list({ ...query, states })
  const results = await inTurns(items.filter(isMeant), async ({ id }) => ({ id, result: await change(id) }))
  const changed = results.filter(({ result }) => DONE.includes(result)).map(({ id }) => id)
  return { changed, refused: results.length - changed.length, ...(next === undefined ? {} : { next }) }
}

const DONE: readonly (CancelResult | RetryResult)[] = ['cancelled', 'requested', 'ready']
