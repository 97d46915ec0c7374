import type { Database } from '../connection/database.js'

const ENGAGED = 'select belfry.engaged_runs($1, $2, belfry.now_us() / 1000) < $2'

export async function isAvailable(db: Database, key: string, limit: number): Promise<boolean> {
  const [row] = await db.read(ENGAGED, [key, limit])
  return row?.[0] === 't'
}
