import type { PruneRequest } from '../../core/store.js'
import type { SqliteFile } from './file.js'
import { dropLease, handOn } from './names.js'
import { engagedRuns } from './run-endings.js'
import { forgetSchedule } from './schedule-changes.js'
import type { Tx } from './tx.js'

/** Each step forgets up to so many things of its kind that are due to be forgotten, and says how many. */
type Step = (tx: Tx, request: PruneRequest, limit: number) => number

/** How much one transaction forgets. */
const CHUNK = 250

/** Cost is by what is forgotten: every kind has its oldest at hand. */
export async function pruneHistory(file: SqliteFile, request: PruneRequest): Promise<number> {
  let forgotten = 0
  for (const step of STEPS) {
    while (forgotten < request.limit) {
      const limit = Math.min(request.limit - forgotten, CHUNK)
      const count = await file.write((tx) => {
        const done = step(tx, request, limit)
        handOn(tx)
        return done
      })
      forgotten += count
      if (count < limit) break
    }
  }
  return forgotten
}

const STEPS: readonly Step[] = [
  pruneRuns,
  pruneSkips,
  pruneSchedules,
  pruneLocks,
  pruneNames,
  pruneDedupes,
  pruneRecords,
]

const ENDED = 'select id, finished_at from belfry_runs where ended is not null order by ended limit ?'
const FORGET_RUNS = 'delete from belfry_runs where id in (select value from json_each(?))'

function pruneRuns({ db, now, counters }: Tx, { maxAgeMs, maxRuns }: PruneRequest, limit: number): number {
  const surplus = counters.kept - maxRuns
  const oldest = db.all<[number, number]>(ENDED, limit)
  const young = oldest.findIndex(([, finishedAt], at) => finishedAt > now - maxAgeMs && at >= surplus)
  const gone = young === -1 ? oldest : oldest.slice(0, young)
  if (gone.length === 0) return 0
  db.run(FORGET_RUNS, JSON.stringify(gone.map(([id]) => id)))
  counters.forgetEnded(gone.length)
  return gone.length
}

const FORGET_SKIPS = `delete from belfry_skips where seq in (
  select seq from (select seq, recorded_at from belfry_skips order by seq limit ?) where recorded_at <= ?)`

function pruneSkips({ db, now }: Tx, { maxAgeMs }: PruneRequest, limit: number): number {
  return db.run(FORGET_SKIPS, limit, now - maxAgeMs)
}

const FINISHED = `select id, definition from belfry_schedules s
  where finished_at is not null and finished_at <= ? and removable = 1
  and not exists (
    select 1 from belfry_runs r
    where r.schedule = s.id and r.ended is null and r.waits_for <> 2 and r.unlisted = 0
      and (r.engaged = 1 or r.ready_at <= ?))
  and not exists (select 1 from belfry_runs r where r.schedule = s.id and r.state = 0 and r.waits_for = 2)
  order by finished_at, seq limit ?`

/** A finished schedule goes with its history, once nothing of it is unfinished. */
function pruneSchedules(tx: Tx, { maxAgeMs }: PruneRequest, limit: number): number {
  const gone = tx.db.all<[string, number]>(FINISHED, tx.now - maxAgeMs, tx.now, limit)
  const over = gone.filter(([id]) => engagedRuns(tx, id).length === 0)
  for (const [id, definition] of over) forgetSchedule(tx, id, definition)
  return over.length
}

const EXPIRED = `select name, holder from belfry_leases where run is null and expires_at <= ?
  order by expires_at limit ?`

/** Locks whose holders went away without a word. */
function pruneLocks(tx: Tx, { leaseAgeMs }: PruneRequest, limit: number): number {
  const gone = tx.db.all<[string, string]>(EXPIRED, tx.now - leaseAgeMs, limit)
  for (const [name, holder] of gone) dropLease(tx, name, holder)
  return gone.length
}

const FREED = 'select name from belfry_names where freed_at is not null and freed_at <= ? order by freed_at limit ?'
const FORGET_NAME = 'delete from belfry_names where name = ?'

function pruneNames({ db, now }: Tx, { leaseAgeMs }: PruneRequest, limit: number): number {
  const gone = db.all<[string]>(FREED, now - leaseAgeMs, limit)
  for (const [name] of gone) db.run(FORGET_NAME, name)
  return gone.length
}

const FORGET_DEDUPES = `delete from belfry_dedupes where (target, dedupe) in (
  select target, dedupe from belfry_dedupes where until is not null and until <= ? order by until limit ?)`

function pruneDedupes({ db, now }: Tx, _request: PruneRequest, limit: number): number {
  return db.run(FORGET_DEDUPES, now, limit)
}

const FORGET_RECORDS = `delete from belfry_records where (kind, id) in (
  select kind, id from belfry_records where expires_at is not null and expires_at <= ? order by expires_at limit ?)`

function pruneRecords({ db, now }: Tx, _request: PruneRequest, limit: number): number {
  return db.run(FORGET_RECORDS, now, limit)
}
