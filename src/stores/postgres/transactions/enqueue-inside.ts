/**
 * Making runs inside a transaction of the caller's: they are there when it commits, and never if it does not.
 *
 * Whether there is a transaction is told by its number: the first statement asks for it, and the second makes the runs
 * only if it has the same one. Over a pool, or outside of a transaction, each statement has its own.
 *
 * The hint goes with the transaction, so it arrives when the runs are there, in this process too.
 */
import { failure } from '../../../core/errors.js'
import type { NewRun } from '../../../core/run.js'
import type { EnqueueResult } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { sqlState } from '../connection/errors.js'
import { checkCount } from '../runs/enqueue.js'
import { newRuns } from '../runs/run-codec.js'
import type { CallerTransaction } from './adapters/caller-transaction.js'

const WHICH = 'select pg_current_xact_id()::text as xid'
const ENQUEUE = `select outcome, run::text as run
  from belfry.enqueue_runs_inside($1::text, $2::text, $3::text::json)`

export async function enqueueInside(db: Database, runs: readonly NewRun[], tx: unknown): Promise<EnqueueResult[]> {
  if (!isTransaction(tx)) throw notOne()
  if (runs.length === 0) return []
  checkCount(runs)
  const xid = await ask<{ readonly xid: string }>(tx, WHICH, [])
  const values = [xid[0]?.xid ?? '', db.channel ?? '', String(newRuns.encode(runs))]
  const results = await ask<Answer>(tx, db.text(ENQUEUE), values).catch((error: unknown) => {
    throw NOT_THERE.has(sqlState(rootOf(error)) ?? '') ? otherDatabase(db, error) : error
  })
  return results.map(({ outcome, run }) => {
    if (outcome === 'outside' || outcome === 'isolated') throw REFUSALS[outcome]()
    return { outcome, run }
  })
}

type Refused = 'outside' | 'isolated'

interface Answer {
  readonly outcome: EnqueueResult['outcome'] | Refused
  readonly run: string
}

async function ask<Found>(tx: CallerTransaction, sql: string, values: string[]): Promise<readonly Found[]> {
  return (await tx.query(sql, values)).rows as readonly Found[]
}

function isTransaction(tx: unknown): tx is CallerTransaction {
  return typeof (tx as { readonly query?: unknown } | null | undefined)?.query === 'function'
}

/** No such schema, table or function. */
const NOT_THERE: ReadonlySet<string> = new Set(['3F000', '42P01', '42883'])

/** Libraries wrap the errors of their drivers. */
function rootOf(error: unknown): unknown {
  let root = error
  for (let depth = 0; depth < 5 && sqlState(root) === undefined; depth += 1) {
    const { cause } = (root ?? {}) as { readonly cause?: unknown }
    if (cause === undefined) break
    root = cause
  }
  return root
}

function notOne() {
  return failure(
    'OPTION_INVALID',
    'enqueue: `tx` must be a client of `pg` that has a transaction open, or what fromDrizzle, fromKysely, fromPrisma or fromKnex makes of yours',
  )
}

function notOpen() {
  return failure(
    'OPTION_INVALID',
    'enqueue: `tx` has no transaction open, or is a pool, so nothing was enqueued: begin one on a client of its own, or enqueue without `tx`',
  )
}

function isolated() {
  return failure(
    'OPTION_INVALID',
    'enqueue: this run is checked against others of its exclusive key or its schedule when it is enqueued, which needs a transaction at read committed',
  )
}

const REFUSALS: Readonly<Record<Refused, () => Error>> = { outside: notOpen, isolated }

function otherDatabase(db: Database, cause: unknown) {
  return failure(
    'OPTION_INVALID',
    `enqueue: \`tx\` is on a database without the tables of schema "${db.schema}": it must be the store's own`,
    { cause },
  )
}
