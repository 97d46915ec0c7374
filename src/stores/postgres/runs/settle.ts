import { runNumber } from '../../../core/runs/run-id.js'
import type { Settlement, SettleResult } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { call, changes, integers, sqlFunction } from '../schema/sql-function.js'
import { settlementRows } from './run-codec.js'
import source from './settle.sql'

const settle = sqlFunction({
  name: 'settle_runs',
  source,
  takes: { settlements: settlementRows },
  gives: { settled: integers, hints: changes },
})

export async function settleRuns(db: Database, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  if (settlements.length === 0) return []
  const given = inOrder(settlements)
  const { settled, hints } = await call(
    db,
    settle,
    { settlements: given.map(({ settlement }) => settlement) },
    { patience: 'prompt' },
  )
  db.announce(hints)
  const results = settlements.map((): SettleResult => 'stale')
  for (const place of settled) results[given[place - 1]?.at ?? -1] = 'settled'
  return results
}

/**
 * Sorts settlements by run number, the order in which runs are locked. Settlements of the same run keep their order.
 */
function inOrder(settlements: readonly Settlement[]) {
  return settlements
    .map((settlement, at) => ({ settlement, at, number: runNumber(settlement.run) }))
    .sort((one, other) => one.number - other.number)
}
