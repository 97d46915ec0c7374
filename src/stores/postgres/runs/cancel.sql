-- Cancels a run that is not running, or asks a running one to cancel.
-- Locks: the run's key, the run, its dedupe key. For a run that waits for others of its schedule: its key, its dedupe
-- key, the schedule's overlap queue.
create or replace function belfry.cancel_run(run_id bigint, run_mark bigint, out outcome text, out hints belfry.hint[])
language plpgsql as $$
declare
  now_us bigint;
  keys text[];
  was_waiting boolean;
  run belfry.runs;
begin
  perform belfry.durable();
  hints := '{}';
  select array_remove(array[r.key], null), r.waits_for = 'overlap' into keys, was_waiting
  from belfry.runs r where r.id = run_id and r.mark = run_mark and r.state < 'succeeded';
  perform belfry.lock_names(keys);
  if was_waiting then
    perform belfry.lock_dedupes(array[run_id]);
    perform belfry.lock_overlap_queues(array(select r.schedule from belfry.runs r where r.id = run_id));
    select * into run from belfry.runs r where r.id = run_id and r.waits_for = 'overlap' for update;
    if not found then
      perform belfry.try_again('the run became ready meanwhile');
    end if;
  else
    select * into run from belfry.runs r where r.id = run_id and r.mark = run_mark for update;
  end if;
  if run.state < 'succeeded' and run.key is not null and run.key is distinct from keys[1] then
    perform belfry.try_again('the run was given its key meanwhile');
  end if;
  if run.id is null then
    outcome := 'missing';
  elsif run.state >= 'succeeded' then
    outcome := 'finished';
  elsif run.state = 'running' then
    update belfry.runs r set cancel_requested = true where r.id = run_id;
    outcome := 'requested';
    hints := hints || 'attempts'::belfry.hint;
  else
    now_us := belfry.now_us();
    perform belfry.end_run(run, 'cancelled', now_us / 1000);
    outcome := 'cancelled';
    hints := hints || 'settled'::belfry.hint;
    -- A run that waits for others of its schedule holds up none of them, so nothing has to be passed on there.
    if was_waiting then
      hints := hints || belfry.pass_on(keys, '{}', now_us, 'give up');
    else
      hints := hints || belfry.pass_on(keys, array[run.schedule], now_us, 'wait');
    end if;
  end if;
end $$;
