/**
 * Reading schedules, deciding, and writing what was decided. At first nothing is held in between: the writing finds out
 * whether all is still as it was read, and if not, it is read and decided again. A large batch of schedules that tick all
 * the time would never get through like that, so the third time they are held while it is decided. Whoever does so is
 * the only one who changes schedules meanwhile.
 */
import type { Database, Row, Transaction } from '../connection/database.js'
import { operation } from '../connection/sql-function.js'
import { lockRuns, lockWaitingRuns } from '../lock-order.js'
import { IS_TICK } from '../run-row.js'

/** Takes schedules, and what was recorded of them and never claimed. */
export const HOLD_FUNCTION = operation(
  'hold_schedules(v_ids text[])',
  'void',
  `
declare
  v_names text[];
begin
  perform 1 from belfry.schedules where id = any (v_ids) order by id for update;
  v_names := array(select key from belfry.runs
    where schedule = any (v_ids) and state < 3 and not running and ${IS_TICK} and key is not null);
  perform belfry.lock_names(v_names);
  ${lockRuns(`schedule = any (v_ids) and state < 3 and not running and ${IS_TICK}`, 'v_names')}
  ${lockWaitingRuns('schedule = any (v_ids) and state < 3 and not running')}
end`,
)

/** Changing schedules: together with others, or alone. */
const CHANGERS = `7237133, hashtext('belfry.schedules')`
export const WITH_OTHERS = `pg_advisory_xact_lock_shared(${CHANGERS})`
const ALONE = `select belfry.durable(), pg_advisory_xact_lock(${CHANGERS})`

const HOLD = 'select belfry.hold_schedules($1)'
const TRIES_WITHOUT = 2

/** What the work on schedules is done with. */
export interface Access {
  /** Whether the schedules are held while it is decided. */
  readonly holds: boolean
  /** One statement. */
  run(sql: string, values: readonly unknown[]): Promise<readonly Row[]>
}

export interface Decided<Outcome> {
  readonly outcome: Outcome
  /** What to hint at, once it is committed. */
  readonly wakes: number
}

export interface WithSchedulesOptions {
  readonly ids: readonly string[]
  /** Whether doing it again changes nothing more, when it is not known whether it was done. */
  readonly repeatable?: boolean
}

export async function withSchedules<Outcome>(
  db: Database,
  { ids, repeatable = true }: WithSchedulesOptions,
  work: (access: Access) => Promise<Decided<Outcome>>,
): Promise<Outcome> {
  let tries = 0

  function holdThem(): Promise<Decided<Outcome>> {
    const held = async (_: readonly Row[], tx: Transaction) => {
      await tx.run(HOLD, [ids])
      return work({ holds: true, run: (sql, values) => tx.run(sql, values) })
    }
    return db.transaction(ALONE, held, { repeatable, patience: 'patient' })
  }

  function decide(): Promise<Decided<Outcome>> {
    tries += 1
    if (tries > TRIES_WITHOUT) return holdThem()
    return work({
      holds: false,
      run: (sql, values) => db.send(sql, values, { patience: 'patient' }),
    })
  }

  const { outcome, wakes } = await db.attempt(decide, { repeatable })
  db.announce(wakes)
  return outcome
}
