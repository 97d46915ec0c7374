/**
 * Ticks that nobody has to look for. The open runs of a schedule are listed in an index of their own, which is what an
 * overlap policy, a take-back and a lane ask. Most ticks are of schedules that let runs overlap, and come and go without
 * being asked for once: they are recorded unlisted, and the index, the most expensive one to keep, is spared.
 *
 * Whoever asks for all open runs of a schedule lists its ticks first. They are found without that index: one that is
 * ready is not before the first ready run of its target, because it became ready at its tick under the target and the
 * priority that the schedule still has (a change of these lists them), and one that is running is among the running. Any
 * other step of a run's life writes the whole row, and lists it.
 */
import type { Connection } from './connection.js'
import type { Tx } from './tx.js'

const OF_SCHEDULE = 'from belfry_schedules s join belfry_definitions d on d.id = s.definition where s.id = ?1'

const FIRST_READY = `(
  select min(ready_at) from belfry_runs
  where state = 1 and target = (select d.target ${OF_SCHEDULE}) and priority = (select d.priority ${OF_SCHEDULE}))`

/** Of schedule ?1: ready, and not listed. */
export const UNLISTED_READY = `schedule = ?1 and slot = '' and tick >= ${FIRST_READY} and unlisted = 1 and state = 1`

const LIST_READY = `update belfry_runs set unlisted = 0 where ${UNLISTED_READY}`
const LIST_RUNNING = `update belfry_runs indexed by belfry_runs_running set unlisted = 0
  where state = 2 and schedule = ?1 and unlisted = 1`
const RUNNING = `select distinct schedule from belfry_runs indexed by belfry_runs_running where state = 2 and unlisted = 1`

/** Lists all open ticks of a schedule. */
export function listTicks(tx: Tx, schedule: string): void {
  listReadyTicks(tx, schedule)
  listRunningTicks(tx, schedule)
}

export function listReadyTicks({ db }: Pick<Tx, 'db'>, schedule: string): void {
  db.run(LIST_READY, schedule)
}

/** Nothing starts while schedules are written, so who runs is looked up once a transaction. */
export function listRunningTicks(tx: Tx, schedule: string): void {
  tx.unlistedRunning ??= schedulesOfUnlisted(tx.db)
  if (tx.unlistedRunning.has(schedule)) tx.db.run(LIST_RUNNING, schedule)
}

function schedulesOfUnlisted(db: Connection): ReadonlySet<string> {
  return new Set(db.all<[string]>(RUNNING).map(([schedule]) => schedule))
}
