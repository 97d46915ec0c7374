/** How a run moves on, ends, makes way, or is taken from whoever runs it. Each step expects the run's row to be locked. */
import { LOST_MESSAGE } from '../../core/lost.js'
import { MAX_TAKEOVERS } from '../../core/run.js'
import { step } from './connection/sql-function.js'
import { dedupeOf, takeRuns } from './lock-order.js'

/** Puts a waiting run where claims look for it. One without its key waits for that first. */
const MAKE_READY = step(
  'make_ready(r belfry.runs)',
  'void',
  `
begin
  update belfry.runs set state = case when unstamped then 0 else 1 end, waits_for = case when unstamped then 1 else 0 end,
    engaged = engaged or attempt > 0 or unstamped where id = r.id;
end`,
)

const MAKE_WAIT = step(
  'make_wait(v_run bigint, v_for smallint)',
  'void',
  `
begin
  update belfry.runs set state = 0, waits_for = v_for, engaged = true where id = v_run;
end`,
)

/** Ends a run: its key is freed, and it stays in the history or not. What a kept history would say, the skips do. */
const END_RUN = step(
  'end_run(r belfry.runs, v_to integer, v_now bigint, v_reason text, v_error text, v_result text)',
  'void',
  `
begin
  if r.key is not null and r.running then delete from belfry.leases where run = r.id; end if;
  if r.dedupe is not null then
    if coalesce(r.dedupe_ms, 0) <= 0 then
      delete from belfry.dedupes where ${dedupeOf('r')} and run = r.id;
    else
      update belfry.dedupes set until = v_now + r.dedupe_ms where ${dedupeOf('r')} and run = r.id;
    end if;
  end if;
  if r.keep = 0 or (r.keep = 1 and v_to <> 3) then
    update belfry.runs set state = v_to, running = false, waits_for = 0, finished_at = v_now, ended = nextval('belfry.endings'),
      reason = v_reason, error = v_error, result = v_result, failures = r.failures, settled_token = r.settled_token
      where id = r.id;
  else
    if v_reason is not null and r.origin = 0 and r.schedule is not null then
      insert into belfry.skips (schedule, from_at, to_at, count, reason, recorded_at)
        values (r.schedule, r.tick, r.tick, 1, v_reason, v_now);
    end if;
    delete from belfry.runs where id = r.id;
  end if;
end`,
)

/** A running run becomes ready again, at once or later. */
const GIVE_BACK = step(
  'give_back(r belfry.runs, v_ready_at bigint)',
  'void',
  `
begin
  if r.key is not null then delete from belfry.leases where run = r.id; end if;
  update belfry.runs set state = 1, running = false, waits_for = 0, ready_at = v_ready_at, engaged = true, rescued = r.rescued,
    failures = r.failures, error = r.error, settled_token = r.settled_token where id = r.id;
end`,
)

/** Its handler's transaction has committed: however the attempt ends, the run has succeeded. */
const HAS_COMMITTED = step(
  'has_committed(r belfry.runs)',
  'boolean',
  `
begin
  return r.running and r.settled_token is not distinct from r.token;
end`,
)

/** Takes a run from whoever runs it: its token settles no more, and it is ready for another. */
const TAKE_OVER = step(
  'take_over(r belfry.runs, v_now bigint, v_died boolean)',
  'text',
  `
begin
  if belfry.has_committed(r) then
    perform belfry.end_run(r, 3, v_now, null, null, r.result);
    return 'ended';
  end if;
  if r.cancel then
    perform belfry.end_run(r, 5, v_now, null, null, null);
    return 'ended';
  end if;
  if v_died and r.takeovers >= ${MAX_TAKEOVERS} then
    perform belfry.end_run(r, 4, v_now, null, json_build_object('code', 'LOST', 'message',
      format('${LOST_MESSAGE}', r.takeovers + 1, r.instance))::text, null);
    return 'lost';
  end if;
  r.rescued := v_died;
  perform belfry.give_back(r, v_now);
  return 'ready';
end`,
)

/**
 * Running runs are asked to cancel, those between attempts are cancelled, and those that never began are skipped. All of
 * them are locked already, but for what came in between.
 */
const MAKE_WAY = step(
  'make_way(v_schedule text, v_now bigint, out names text[], out wakes integer)',
  'record',
  `
declare
  v_runs bigint[];
  r belfry.runs;
begin
  wakes := 0;
  ${takeRuns('v_runs', 'schedule = v_schedule and state < 3 and (waits_for = 2 or engaged or ready_at <= v_now)')}
  names := array(select key from belfry.runs where id = any (v_runs) and key is not null);
  perform belfry.take_names(names);
  perform belfry.take_dedupes(v_runs);
  for r in select * from belfry.runs where id = any (v_runs) order by id loop
    if r.running then
      update belfry.runs set cancel = true where id = r.id;
      wakes := wakes | 8;
    else
      perform belfry.end_run(r, case when r.attempt > 0 then 5 else 6 end, v_now,
        case when r.attempt > 0 then null else 'overlap' end, null, null);
      wakes := wakes | 16;
    end if;
  end loop;
end`,
)

export const RUN_ENDING_FUNCTIONS = [
  MAKE_READY,
  MAKE_WAIT,
  END_RUN,
  GIVE_BACK,
  HAS_COMMITTED,
  TAKE_OVER,
  MAKE_WAY,
].join('\n')
