/**
 * `enqueue(…, { tx })`: runs that exist if, and only if, the caller's own transaction commits.
 *
 * Two statements are sent over `tx`: the first asks for the number of its transaction, the second creates the runs if it
 * has the same number (`enqueue-inside.sql`). Over a pool, or outside of a transaction, each statement has its own number,
 * and nothing is created. The hint is part of the transaction, so it arrives when the runs can be seen.
 */
import { failure } from '../../../core/errors.js'
import type { NewRun } from '../../../core/runs/run.js'
import type { EnqueueResult } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { sqlState } from '../connection/errors.js'
import { checkCount } from '../runs/enqueue.js'
import { newRuns } from '../runs/run-codec.js'
import type { CallerTransaction } from './adapters/caller-transaction.js'

const NUMBER = 'select pg_catalog.pg_current_xact_id()::text as number'
const ENQUEUE = 'select outcome, run from belfry.enqueue_runs_inside($1::text, $2::text, $3::text::json)'

const REFUSALS = {
  outside:
    '`tx` has no transaction open, or is a pool, so nothing was enqueued: begin one on a client of its own, or enqueue without `tx`',
  isolated:
    'this run is checked against others of its exclusive key or its schedule when it is enqueued, which needs a transaction at read committed',
} as const

interface Answer {
  readonly outcome: EnqueueResult['outcome'] | keyof typeof REFUSALS
  readonly run: string
}

export async function enqueueInside(db: Database, runs: readonly NewRun[], tx: unknown): Promise<EnqueueResult[]> {
  if (!isTransaction(tx)) {
    throw refused(
      '`tx` must be a client of `pg` that has a transaction open, or what fromDrizzle, fromKysely, fromPrisma or fromKnex makes of yours',
    )
  }
  if (runs.length === 0) return []
  checkCount(runs)
  const [transaction] = await rowsOf<{ readonly number: string }>(tx, NUMBER, [])
  const values = [transaction?.number ?? '', db.channel ?? '', String(newRuns.encode(runs))]
  const results = await rowsOf<Answer>(tx, db.text(ENQUEUE), values).catch((error: unknown) => {
    if (!MISSING.has(sqlState(driverError(error)) ?? '')) throw error
    throw refused(
      `\`tx\` is on a database without the tables of schema "${db.schema}": it must be the store's own`,
      error,
    )
  })
  return results.map(({ outcome, run }) => {
    if (outcome === 'outside' || outcome === 'isolated') throw refused(REFUSALS[outcome])
    return { outcome, run }
  })
}

async function rowsOf<Found>(tx: CallerTransaction, sql: string, values: string[]): Promise<readonly Found[]> {
  return (await tx.query(sql, values)).rows as readonly Found[]
}

function isTransaction(tx: unknown): tx is CallerTransaction {
  return typeof (tx as { readonly query?: unknown } | null | undefined)?.query === 'function'
}

function refused(why: string, cause?: unknown) {
  return failure('OPTION_INVALID', `enqueue: ${why}`, cause === undefined ? {} : { cause })
}

/** SQLSTATEs: no such schema, table or function. */
const MISSING: ReadonlySet<string> = new Set(['3F000', '42P01', '42883'])

/** The error of the driver. Other libraries wrap it in errors of their own, as the `cause`. */
function driverError(error: unknown): unknown {
  let root = error
  for (let depth = 0; depth < 5 && sqlState(root) === undefined; depth += 1) {
    const { cause } = (root ?? {}) as { readonly cause?: unknown }
    if (cause === undefined) break
    root = cause
  }
  return root
}
