import type { BeatRequest, BeatResult, Instance, InstanceInfo, JobInfo } from '../../core/instance.js'
import type { DeclaredSet } from '../../core/store.js'
import type { Connection } from './connection.js'
import { handOn } from './names.js'
import { takeOver } from './run-endings.js'
import { RUN_COLUMNS, type RunRecord, type RunRow, runRecord } from './run-row.js'
import { loadRun } from './run-write.js'
import type { Tx } from './tx.js'
import { type Steps, stepwise } from './write-queue.js'

const STATUS = 'select dead from belfry_instances where id = ?'

const JOIN = `insert into belfry_instances
  (id, info, app, declarations, joined_at, beat_at, expires_at, dead, claims_settled)
  values (?1, ?2, ?3, ?4, ?5, ?5, ?6, 0, -1)
  on conflict (id) do update set info = excluded.info, app = excluded.app, declarations = excluded.declarations,
    joined_at = excluded.joined_at, beat_at = excluded.beat_at, expires_at = excluded.expires_at, dead = 0,
    claims_settled = -1`
const EXTEND = 'update belfry_instances set beat_at = ?, expires_at = ? where id = ?'
const NOTE_JOB = `insert into belfry_jobs (name, info) values (?, ?)
  on conflict (name) do update set info = excluded.info`

export function* joinInstance(tx: Tx, info: InstanceInfo, leaseMs: number): Steps<{ readonly now: number }> {
  const { db, now } = tx
  const { id, app = null, declarations = null } = info
  const dead = db.get<[number]>(STATUS, id)?.[0]
  if (dead === 0) db.run(EXTEND, now, now + leaseMs, id)
  else {
    if (dead === 1) yield* forget(tx, id, true)
    db.run(JOIN, id, JSON.stringify(info), app, declarations, now, now + leaseMs)
  }
  for (const job of info.jobs) db.run(NOTE_JOB, job.name, JSON.stringify(job))
  noteAlive(tx, app, declarations)
  handOn(tx)
  return { now }
}

const RUNNING = `select ${RUN_COLUMNS} from belfry_runs where state = 2 and instance = ? order by id limit ?`

export function runningOf({ db }: Pick<Tx, 'db'>, instance: string, limit = -1): RunRecord[] {
  return db.all<RunRow>(RUNNING, instance, limit).map(runRecord)
}

const BEATING = 'select app, declarations from belfry_instances where id = ? and dead = 0'
const HELD = 'select id, token, claim, cancel from belfry_runs where state = 2 and instance = ?'
const SETTLE_CLAIMS = 'update belfry_instances set claims_settled = max(claims_settled, ?) where id = ?'
const FORGET_CLAIMS = 'delete from belfry_claims where instance = ? and claim <= ?'

export function beatInstance(tx: Tx, request: BeatRequest): BeatResult {
  const { db, now } = tx
  const { instance, attempts, leaseMs, claimsSettled } = request
  const row = db.get<[string | null, string | null]>(BEATING, instance)
  if (row === undefined) return { alive: false, lost: attempts.map(({ run }) => run), cancel: [], now }
  db.run(EXTEND, now, now + leaseMs, instance)
  noteAlive(tx, ...row)
  db.run(SETTLE_CLAIMS, claimsSettled, instance)
  db.run(FORGET_CLAIMS, instance, claimsSettled)
  const held = db.all<[number, number, number, number]>(HELD, instance)
  const tokens = new Map(held.map(([id, token]) => [String(id), token]))
  const own = new Set(attempts.filter(({ run, token }) => tokens.get(run) === token).map(({ run }) => run))
  for (const [id, , claim] of held) {
    // Of a claim that was answered, and the instance knows nothing of it: the answer was lost.
    if (claim <= claimsSettled && !own.has(String(id))) giveBackUnheard(tx, id)
  }
  handOn(tx)
  return {
    alive: true,
    lost: attempts.filter(({ run }) => !own.has(run)).map(({ run }) => run),
    cancel: held.filter(([id, , , cancel]) => cancel === 1 && own.has(String(id))).map(([id]) => String(id)),
    now,
  }
}

function giveBackUnheard(tx: Tx, id: number): void {
  const run = loadRun(tx, id)
  if (run !== undefined) takeOver(tx, run, false)
}

export function* leaveInstance(tx: Tx, id: string): Steps<void> {
  if (tx.db.get(STATUS, id) === undefined) return
  yield* forget(tx, id, false)
  handOn(tx)
}

const FORGET = 'delete from belfry_instances where id = ?'
const FORGET_ALL_CLAIMS = 'delete from belfry_claims where instance = ?'

function* forget(tx: Tx, id: string, died: boolean): Steps<void> {
  yield* stepwise(runningOf(tx, id), (run) => takeOver(tx, run, died))
  forgetInstance(tx, id)
}

export function forgetInstance({ db }: Tx, id: string): void {
  db.run(FORGET, id)
  db.run(FORGET_ALL_CLAIMS, id)
}

const LIST = 'select info, joined_at, beat_at, expires_at from belfry_instances where dead = 0 order by seq'

export function listInstances(db: Connection): Instance[] {
  return db.all<[string, number, number, number]>(LIST).map(([info, joinedAt, beatAt, expiresAt]) => ({
    ...(JSON.parse(info) as InstanceInfo),
    ...{ joinedAt, beatAt, expiresAt },
  }))
}

const JOBS = 'select info from belfry_jobs order by seq'

export function listJobs(db: Connection): JobInfo[] {
  return db.all<[string]>(JOBS).map(([info]) => JSON.parse(info) as JobInfo)
}

const DECLARED = `select hash, release, schedules, first_seen_at, alive_at from belfry_declarations where app = ?
  order by seq`

type DeclaredRow = [string, string | null, string, number, number]

export function listDeclared(db: Connection, app: string): DeclaredSet[] {
  return db.all<DeclaredRow>(DECLARED, app).map(([hash, release, schedules, firstSeenAt, aliveAt]) => ({
    ...{ hash, schedules: JSON.parse(schedules) as string[], firstSeenAt, aliveAt },
    ...(release === null ? {} : { release }),
  }))
}

const DECLARE = `insert into belfry_declarations (app, hash, release, schedules, first_seen_at, alive_at)
  values (?1, ?2, ?3, ?4, ?5, ?5) on conflict (app, hash) do nothing`

export function declareSet(
  { db, now }: Tx,
  app: string,
  { hash, release, schedules }: Pick<DeclaredSet, 'hash' | 'release' | 'schedules'>,
): void {
  db.run(DECLARE, app, hash, release ?? null, JSON.stringify(schedules), now)
}

const NOTE_ALIVE = 'update belfry_declarations set alive_at = ? where app = ? and hash = ?'

function noteAlive({ db, now }: Tx, app: string | null, declarations: string | null): void {
  if (app !== null && declarations !== null) db.run(NOTE_ALIVE, now, app, declarations)
}
