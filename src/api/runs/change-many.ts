/** Cancels or retries all matching runs, one bounded page at a time. */
import { failure, quote } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import { FINISHED_STATES, type Run, type RunState, UNFINISHED_STATES } from '../../core/runs/run.js'
import { mayBecome } from '../../core/runs/transitions.js'
import type { CancelResult, RetryResult, RunQuery, Store } from '../../core/store.js'

export interface ManyRunsResult {
  /** The runs that were changed, and running ones that were asked to cancel. */
  readonly changed: readonly string[]
  /** Runs that matched, but whose state no longer allows the change. */
  readonly refused: number
  /** The `after` of the next call; absent when no more runs match. */
  readonly next?: string
}

const MAX_LIMIT = 1_000
export const CANCELLABLE: readonly RunState[] = UNFINISHED_STATES
export const RETRYABLE: readonly RunState[] = FINISHED_STATES.filter((state) => mayBecome(state, 'ready'))

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
    throw failure('OPTION_INVALID', `${where}: runs that are ${stranger} cannot be meant; ${allowed.join(', ')} can`)
  }
  const { items, next } = await store.runs.list({ ...query, states })
  const results = await inTurns(items.filter(isMeant), async ({ id }) => ({ id, result: await change(id) }))
  const changed = results.filter(({ result }) => DONE.includes(result)).map(({ id }) => id)
  return { changed, refused: results.length - changed.length, ...(next === undefined ? {} : { next }) }
}

const DONE: readonly (CancelResult | RetryResult)[] = ['cancelled', 'requested', 'ready']
