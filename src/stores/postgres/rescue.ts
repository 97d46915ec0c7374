/**
 * Taking over from the dead, and repairing: a key or a schedule with waiters that nothing holds up goes on. Time alone
 * frees leases, and nobody notices that but the sweep.
 */
import type { RescueResult } from '../../core/store.js'
import type { Database } from './connection/database.js'
import { gone } from './connection/proof-sql.js'
import { operation, step } from './connection/sql-function.js'
import { WAKE_RUNS } from './connection/wakes.js'
import { PICKED, pickRuns } from './take-runs.js'
import { LINE, waitingForKey } from './waiting-line.js'

/**
 * Names that somebody waits for, each once, by stepping from one to the next: not by reading all that wait. Where there are
 * too many, it is others each time: one that could go on must not be left out for ever behind some that cannot.
 */
const BLOCKED_NAMES = step(
  'blocked_names(v_limit integer)',
  'text[]',
  `
begin
  return array(
    with recursive locks (name) as (
      (select name from belfry.waiters order by name limit 1)
      union all
      select (select w.name from belfry.waiters w where w.name > l.name order by w.name limit 1)
      from locks l where l.name is not null
    ), keys (name) as (
      (select ${LINE} from belfry.runs where state = 0 and waits_for = 3 order by (${LINE}) limit 1)
      union all
      select (select ${LINE} from belfry.runs where state = 0 and waits_for = 3 and (${LINE}) > k.name order by (${LINE}) limit 1)
      from keys k where k.name is not null
    )
    select name from (select name from locks union select name from keys) n where name is not null
    order by random() limit v_limit);
end`,
)

const BLOCKED_LANES = step(
  'blocked_lanes(v_limit integer)',
  'text[]',
  `
begin
  return array(
    with recursive lanes (lane) as (
      (select ${LINE} from belfry.runs where state = 0 and waits_for = 2 order by (${LINE}) limit 1)
      union all
      select (select ${LINE} from belfry.runs where state = 0 and waits_for = 2 and (${LINE}) > l.lane
        order by (${LINE}) limit 1) from lanes l where l.lane is not null
    )
    select lane from lanes where lane is not null limit v_limit);
end`,
)

/** Whether a name could go on: a permit is free for the oldest that waits. To look costs less than to lock. */
const COULD_GO_ON = step(
  'could_go_on(v_name text, v_now bigint)',
  'boolean',
  `
begin
  return coalesce(belfry.live_holders(v_name, v_now) < greatest(
    (select max(permits) from belfry.waiters where name = v_name),
    (select key_limit from belfry.runs where ${waitingForKey('v_name')} order by id limit 1)), false);
end`,
)

/** Whoever else is at a name or a lane sees to it himself: repairing waits for nobody. */
const REPAIR = step(
  'repair(v_limit integer, v_us bigint)',
  'integer',
  `
declare
  v_now bigint := v_us / 1000;
  v_names text[] := array(select n from unnest(belfry.blocked_names(v_limit)) n where belfry.could_go_on(n, v_now));
  v_wakes integer := 0;
  v_lane text;
begin
  if cardinality(v_names) > 0 then
    v_names := array(select name from belfry.names where name = any (v_names) order by name for update skip locked);
    v_wakes := belfry.hand_on(v_names, '{}', v_us, 'leave');
  end if;
  foreach v_lane in array belfry.blocked_lanes(v_limit) loop
    if belfry.serve_lane(v_lane, v_now, 'leave') then v_wakes := v_wakes | ${WAKE_RUNS}; end if;
  end loop;
  return v_wakes;
end`,
)

const RESCUE_FUNCTION = operation(
  'rescue(v_limit integer, out rescued integer, out lost integer, out wakes integer)',
  'record',
  `
declare
  v_us bigint := belfry.now_us();
  v_dead text[];${PICKED}
begin
  perform belfry.durable();
  rescued := 0;
  lost := 0;
  wakes := 0;
  v_dead := array(select id from belfry.instances where expires_at <= v_us / 1000 or ${gone('proof')}
    order by seq for update skip locked);
  if cardinality(v_dead) > 0 then
    update belfry.instances set dead = true where id = any (v_dead) and not dead;
    ${pickRuns('select r.* from unnest(v_dead) d cross join lateral belfry.running_of(d) r order by r.id limit v_limit')};
    select t.rescued, t.lost, t.wakes into rescued, lost, wakes from belfry.take_all(v_runs, v_tokens, true, v_us) t;
    v_dead := array(select d from unnest(v_dead) d where not exists (select 1 from belfry.running_of(d)));
    delete from belfry.claims where instance = any (v_dead);
    delete from belfry.instances where id = any (v_dead);
  end if;
  wakes := wakes | belfry.repair(v_limit, v_us);
end`,
)

export const RESCUE_FUNCTIONS = [BLOCKED_NAMES, BLOCKED_LANES, COULD_GO_ON, REPAIR, RESCUE_FUNCTION].join('\n')

const RESCUE = 'select rescued, lost, wakes from belfry.rescue($1)'

export async function rescueRuns(db: Database, limit: number): Promise<RescueResult> {
  const [row] = await db.write(RESCUE, [limit], { patience: 'prompt' })
  db.announce(Number(row?.[2]))
  return { rescued: Number(row?.[0]), lost: Number(row?.[1]) }
}
