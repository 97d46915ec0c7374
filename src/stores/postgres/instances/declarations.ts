/** The sets of schedules that releases of an app declare. */
import type { DeclaredSet } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { declarationCodec } from './instance-codec.js'

const LIST = `select ${declarationCodec.select('d')} from belfry.declarations d where d.app = $1 order by d.seq`

export async function listDeclared(db: Database, app: string): Promise<DeclaredSet[]> {
  return (await db.read(LIST, [app])).map(declarationCodec.read)
}

const DECLARE = `insert into belfry.declarations (app, hash, release, schedules, first_seen_at, alive_at)
  select $1, $2, $3, $4, now_ms, now_ms from (select belfry.now_us() / 1000 as now_ms) clock
  on conflict (app, hash) do nothing`

export async function declareSet(
  db: Database,
  app: string,
  { hash, release, schedules }: Pick<DeclaredSet, 'hash' | 'release' | 'schedules'>,
): Promise<void> {
  await db.write(DECLARE, [app, hash, release ?? null, JSON.stringify(schedules)])
}
