/** Claims runs: claim.sql. What happens when the reply is lost: unheard-claims.sql. */
import type { ClaimedRun, ClaimRequest, ClaimResult } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { changes, integer, integers, optional, sqlFunction, text, texts } from '../schema/sql-function.js'
import source from './claim.sql'
import { runCodec, toSkipped } from './run-codec.js'

const claim = sqlFunction({
  name: 'claim_runs',
  source,
  takes: {
    instanceId: text,
    claimNumber: integer,
    runLimit: integer,
    targets: texts,
    rooms: integers,
    leastToken: integer,
  },
  gives: { nowMs: integer, nextReadyAt: optional(integer), hints: changes, skipped: texts },
})

/**
 * `claimed` is one array of runs. Here each run becomes a row, and a claim without runs becomes one row without a run.
 * Only the first row has the other columns of the claim.
 */
const CLAIM = `select rest.*, ${runCodec.select('r')}
  from ${claim.from} left join lateral pg_catalog.unnest(f.claimed) with ordinality r on true
  left join lateral (select ${claim.columns} where coalesce(r.ordinality, 1) = 1) rest on true`

export async function claimRuns(db: Database, request: ClaimRequest): Promise<ClaimResult> {
  const { instance, limit, jobs, sinks, floor } = request
  const args = claim.values({
    instanceId: instance,
    claimNumber: request.claim,
    runLimit: limit,
    targets: [...jobs.map(({ name }) => `job:${name}`), ...sinks.map(({ name }) => `sink:${name}`)],
    rooms: [...jobs, ...sinks].map((capacity) => Math.min(capacity.limit, limit)),
    leastToken: floor,
  })
  const rows = await db.write(CLAIM, args, { patience: 'prompt' })
  const { nowMs, nextReadyAt, hints, skipped } = claim.read(rows[0] ?? [])
  db.announce(hints)
  return {
    now: nowMs,
    runs: rows
      .map((row) => row.slice(claim.width))
      .filter(([id]) => id !== null)
      .map((row) => runCodec.read(row) as ClaimedRun),
    skipped: skipped.map(toSkipped),
    ...(nextReadyAt === undefined ? {} : { nextReadyAt }),
  }
}
