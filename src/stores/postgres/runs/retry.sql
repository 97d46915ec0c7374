-- Makes a failed, cancelled or skipped run ready again. Refused if another run has taken its dedupe key since.
-- Locks: the run, its dedupe key.
-- Reply lost: the caller decides.
create or replace function belfry.retry_run(run_id bigint, run_mark bigint, out outcome text) language plpgsql as $$
declare
  now_ms bigint;
  run belfry.runs;
begin
  perform belfry.durable();
  perform belfry.make_names(array(select r.key from belfry.runs r where r.id = run_id and r.mark = run_mark));
  select * into run from belfry.runs r where r.id = run_id and r.mark = run_mark for update;
  if not found then
    outcome := 'missing';
    return;
  end if;
  outcome := 'refused';
  if run.state <= 'succeeded' then
    return;
  end if;
  now_ms := belfry.now_us() / 1000;
  if run.dedupe is not null then
    insert into belfry.dedupes as d (target, dedupe, run, mark, until)
    values (run.target, run.dedupe, run.id, run.mark, null)
    on conflict on constraint dedupes_pkey do update set run = excluded.run, mark = excluded.mark, until = null
    where d.until <= now_ms or d.run = excluded.run;
    if not found then
      return;
    end if;
  end if;
  perform belfry.make_ready_again(run, now_ms);
  outcome := 'ready';
end $$;
