import type { PruneRequest } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { call, integer, milliseconds, sqlFunction } from '../schema/sql-function.js'
import source from './prune.sql'

const prune = sqlFunction({
  name: 'prune',
  source,
  takes: { maxAgeMs: milliseconds, maxRuns: integer, leaseAgeMs: milliseconds, stepLimit: integer },
  gives: { pruned: integer },
})

export async function pruneHistory(db: Database, { limit, ...request }: PruneRequest): Promise<number> {
  const { pruned } = await call(db, prune, { ...request, stepLimit: limit }, { patience: 'patient' })
  return pruned
}
