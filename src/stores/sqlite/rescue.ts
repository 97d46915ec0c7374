/**
 * Declares instances dead whose beats stopped, and takes over what they ran. Locks run out without anybody doing
 * anything, so whoever waits for one is looked after too. Looking is reading: what needs no repair is not written.
 */
import type { RescueResult } from '../../core/store.js'
import type { Connection } from './connection.js'
import type { SqliteFile } from './file.js'
import { forgetInstance, runningOf } from './instances.js'
import { handOn, isBusy, nextInLane, oldestStanding, oldestWaiting } from './names.js'
import { takeOver } from './run-endings.js'
import type { Tx } from './tx.js'

/** How many runs one transaction takes over, and how many names one look passes over. */
const CHUNK = 200

export async function rescueRuns(file: SqliteFile, limit: number): Promise<RescueResult> {
  let [rescued, lost] = [0, 0]
  const gone = await file.read(expiredInstances)
  for (let at = 0; at < gone.length && rescued + lost < limit; ) {
    const room = Math.min(limit - rescued - lost, CHUNK)
    const step = await file.write((tx) => rescueInstance(tx, gone[at] ?? '', room))
    rescued += step.rescued
    lost += step.lost
    if (step.rescued + step.lost < room) at += 1
  }
  await repairNames(file)
  await repairLanes(file)
  return { rescued, lost }
}

const EXPIRED = 'select id from belfry_instances where expires_at <= ? order by seq'

function expiredInstances(db: Connection, now: number): string[] {
  return db.all<[string]>(EXPIRED, now).map(([id]) => id)
}

const STILL_EXPIRED = 'update belfry_instances set dead = 1 where id = ? and expires_at <= ?'

function rescueInstance(tx: Tx, instance: string, limit: number): RescueResult {
  let [rescued, lost] = [0, 0]
  if (tx.db.run(STILL_EXPIRED, instance, tx.now) === 0) return { rescued, lost }
  const running = runningOf(tx, instance, limit)
  for (const run of running) {
    if (takeOver(tx, run, true) === 'lost') lost += 1
    else rescued += 1
  }
  if (running.length < limit) forgetInstance(tx, instance)
  handOn(tx)
  return { rescued, lost }
}

const NEXT_NAMES = `
with recursive blocked (name) as (
  select min(name) from (
    select (select min(name) from belfry_waiters where name > ?1) as name
    union all select (select min(key) from belfry_runs where key > ?1 and state = 0))
  union all
  select (select min(name) from (
    select (select min(w.name) from belfry_waiters w where w.name > blocked.name) as name
    union all select (select min(r.key) from belfry_runs r where r.key > blocked.name and r.state = 0)))
  from blocked where name is not null)
select name from blocked where name is not null limit ?2`

/** Names that somebody waits for, and that could go to him. */
async function repairNames(file: SqliteFile): Promise<void> {
  for (let after = ''; ; ) {
    const last = after
    const [names, servable] = await file.read((db, now) => {
      const blocked = db.all<[string]>(NEXT_NAMES, last, CHUNK).map(([name]) => name)
      return [blocked, blocked.filter((name) => isServable(db, now, name))]
    })
    if (servable.length > 0) {
      await file.write((tx) => {
        for (const name of servable) tx.touchedNames.add(name)
        handOn(tx)
      })
    }
    if (names.length < CHUNK) return
    after = names.at(-1) ?? after
    await file.breathe()
  }
}

const WAITER = 'select permits, until from belfry_waiters where name = ? order by seq limit 1'

function isServable(db: Connection, now: number, name: string): boolean {
  const waiter = db.get<[number, number]>(WAITER, name)
  if (waiter !== undefined && (waiter[1] <= now || !isBusy({ db, now }, name, waiter[0]))) return true
  const run = oldestWaiting({ db }, name)
  if (run === undefined || oldestStanding({ db, now }, name) < run.id) return false
  return !isBusy({ db, now }, name, run.key?.limit ?? 1)
}

const NEXT_LANES = `
with recursive lanes (schedule) as (
  select min(schedule) from belfry_runs where state = 0 and waits_for = 2 and schedule > ?1
  union all
  select (select min(r.schedule) from belfry_runs r where r.state = 0 and r.waits_for = 2 and r.schedule > lanes.schedule)
  from lanes where schedule is not null)
select schedule from lanes where schedule is not null limit ?2`

/** Schedules of which everything that is left waits for the rest. */
async function repairLanes(file: SqliteFile): Promise<void> {
  for (let after = ''; ; ) {
    const last = after
    const [lanes, servable] = await file.read((db, now) => {
      const waiting = db.all<[string]>(NEXT_LANES, last, CHUNK).map(([schedule]) => schedule)
      return [waiting, waiting.filter((schedule) => nextInLane({ db, now }, schedule) !== undefined)]
    })
    if (servable.length > 0) {
      await file.write((tx) => {
        for (const schedule of servable) tx.touchedLanes.add(schedule)
        handOn(tx)
      })
    }
    if (lanes.length < CHUNK) return
    after = lanes.at(-1) ?? after
    await file.breathe()
  }
}
