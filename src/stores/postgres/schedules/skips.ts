import type { SkipRange } from '../../../core/schedules/plan.js'
import type { Database } from '../connection/database.js'
import { skipCodec } from './schedule-codec.js'

const SKIPS = `select ${skipCodec.select('s')} from belfry.skips s
  where schedule = $1 and from_at <= $3 and to_at >= $2 order by from_at, seq limit $4`

export async function skippedRanges(
  db: Database,
  id: string,
  from: number,
  to: number,
  limit: number,
): Promise<SkipRange[]> {
  return (await db.read(SKIPS, [id, from, to, limit])).map(skipCodec.read)
}
