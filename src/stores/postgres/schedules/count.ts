import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { afterPrefix } from '../../../core/names/text-order.js'
import type { CountQuery } from '../../../core/store.js'
import type { Database } from '../connection/database.js'

const COUNT = `select count(*) from
  (select from belfry.schedules where id >= $1 and id < $2 limit $3) found`

export async function countSchedules(db: Database, { prefix, limit }: CountQuery): Promise<number> {
  checkPageLimit(limit)
  const [row] = await db.read(COUNT, [prefix, afterPrefix(prefix), limit])
  return Number(row?.[0] ?? 0)
}
