import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { afterPrefix } from '../../../core/names/text-order.js'
import type { CountQuery } from '../../../core/store.js'
import type { Database } from '../connection/database.js'

/** Each part reads a range of one index: `runs_open` for runs of schedules, `runs_alone` for others. */
const ALONE = `select from belfry.runs where schedule is null and state < 'succeeded' and`
const COUNT = `select count(*) from (
    (select from belfry.runs where schedule is not null and state < 'succeeded'
      and schedule >= $1 and schedule < $2 limit $3)
    union all (${ALONE} target >= 'job:' || $1 and target < 'job:' || $2 limit $3)
    union all (${ALONE} target >= 'sink:' || $1 and target < 'sink:' || $2 limit $3)
    limit $3) found`

export async function countRuns(db: Database, { prefix, limit }: CountQuery): Promise<number> {
  checkPageLimit(limit)
  const [row] = await db.read(COUNT, [prefix, afterPrefix(prefix), limit])
  return Number(row?.[0] ?? 0)
}
