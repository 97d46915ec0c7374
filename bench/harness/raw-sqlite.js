// @ts-check
/**
 * The minimum that a scheduler on SQLite has to do, without planning, keys or waiting: prepared statements, 1,000 rows
 * per transaction. The tables are narrower than Belfry's, with the same durability and only the necessary indexes.
 */
import { openDriver } from '../../dist/stores/sqlite/connection/driver.js'
import { temporaryFile } from './stores.js'

const SCHEMA = `
pragma busy_timeout = 0; pragma journal_mode = WAL; pragma synchronous = FULL;
create table schedules (id text primary key, cursor integer, due_at integer) without rowid;
create index due on schedules (due_at);
create table runs (id integer primary key, schedule text, tick integer, payload text, state integer, ready_at integer,
  token integer, instance text, finished_at integer);
create unique index ticks on runs (schedule, tick);
create index ready on runs (ready_at) where state = 1;
create table locks (name text primary key, holder text, expires_at integer) without rowid;`

export const RAW_BATCH = 1_000

/** @param {number} schedules */
export function openRawSqlite(schedules = 0) {
  const { path, remove } = temporaryFile()
  const driver = openDriver(path)
  driver.exec(SCHEMA)
  const begin = driver.prepare('begin immediate')
  const commit = driver.prepare('commit')
  /** @param {() => void} work */
  const transaction = (work) => {
    begin.run([])
    work()
    commit.run([])
  }
  const addSchedule = driver.prepare('insert into schedules values (?, 0, 0)')
  transaction(() => {
    for (let at = 0; at < schedules; at += 1) addSchedule.run([`bench/${at}`])
  })
  const record = driver.prepare('insert into runs (schedule, tick, payload, state, ready_at) values (?, ?, ?, 1, ?)')
  const move = driver.prepare('update schedules set cursor = ?, due_at = ? where id = ?')
  const find = driver.prepare('select id, schedule, tick, payload from runs where state = 1 order by ready_at limit ?')
  const start = driver.prepare('update runs set state = 2, token = ?, instance = ? where id = ?')
  const end = driver.prepare('update runs set state = 3, finished_at = ? where id = ? and token = ?')
  const forget = driver.prepare('delete from runs where id = ? and token = ?')
  const lock = driver.prepare('insert into locks values (?, ?, ?)')
  const unlock = driver.prepare('delete from locks where name = ? and holder = ?')
  let lastRun = 0
  let tick = 0

  return {
    /** Records one tick of each schedule: inserts its run and moves its cursor. */
    recordTicks() {
      tick += 1_000
      for (let from = 0; from < schedules; from += RAW_BATCH) {
        transaction(() => {
          for (let at = from; at < Math.min(from + RAW_BATCH, schedules); at += 1) {
            record.run([`bench/${at}`, tick, 'null', tick])
            move.run([tick, tick + 1_000, `bench/${at}`])
          }
        })
      }
      return schedules
    },

    /** Three writes per run, each batch in its own transaction: record, claim, settle. @param {'all' | 'none'} keep */
    cycle(keep) {
      const first = lastRun + 1
      lastRun += RAW_BATCH
      transaction(() => {
        for (let id = first; id <= lastRun; id += 1) record.run([`bench/${id % 100}`, id, 'null', id])
      })
      /** @type {number[]} */
      let claimed = []
      transaction(() => {
        claimed = find.all([RAW_BATCH]).map(({ id }) => Number(id))
        for (const id of claimed) start.run([id, 'raw', id])
      })
      transaction(() => {
        for (const id of claimed) {
          if (keep === 'all') end.run([lastRun, id, id])
          else forget.run([id, id])
        }
      })
      return claimed.length
    },

    /** @param {string} name */
    lockAndUnlock(name) {
      lock.run([name, 'raw', 1])
      unlock.run([name, 'raw'])
    },

    close() {
      driver.close()
      remove()
    },
  }
}
