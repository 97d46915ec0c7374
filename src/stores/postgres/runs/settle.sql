-- Ends attempts. Returns the positions of the settlements that are settled, from 1; the others are stale, and change
-- nothing.
--
-- Successes of runs without key and dedupe key, the most frequent case, are written all at once. All other settlements
-- are applied one by one, in order of run.
--
-- Locks: the keys by name, the runs by id, their dedupe keys.
-- Crash before the commit: nothing has happened. The lease expires, and another instance takes the runs over.
-- Reply lost: the caller repeats. A run whose settled token is the given one counts as settled again.
create or replace function belfry.settle_runs(
  settlements belfry.settlement[], out settled integer[], out hints belfry.hint[]
) language plpgsql as $$
declare
  now_us bigint := belfry.now_us();
  run_ids bigint[] := array(select s.run from unnest(settlements) s);
  keys text[] := array(select r.key from belfry.runs r where r.id = any (run_ids) and r.key is not null);
  -- The keys and schedules of attempts that were settled here. A stale attempt frees nothing.
  freed_keys text[] := array[]::text[];
  freed_schedules text[] := array[]::text[];
  done record;
  given record;
  attempt belfry.runs;
begin
  perform belfry.durable();
  hints := '{}';
  perform belfry.lock_names(keys);
  perform 1 from belfry.runs r where r.id = any (run_ids) order by r.id for update;
  perform belfry.lock_dedupes(run_ids);
  -- The clock is read again, because this transaction may have waited for the locks: no run may have a `finished_at` at
  -- which it still held its key.
  now_us := belfry.now_us();
  select * into done from belfry.succeed_runs(settlements, now_us / 1000);
  settled := done.settled;
  freed_schedules := freed_schedules || done.schedules;
  if cardinality(settled) > 0 then
    hints := hints || 'settled'::belfry.hint;
  end if;

  if cardinality(settled) < cardinality(settlements) then
    for given in
      select s.* from unnest(settlements) with ordinality as s(run, token, kind, result, error, delay_ms, place)
      where s.place not in (select unnest(settled)) order by s.place
    loop
      select * into attempt from belfry.runs r where r.id = given.run;
      continue when not found;
      if attempt.settled_token = given.token and attempt.state <> 'running' then
        settled := settled || given.place::integer;
        continue;
      end if;
      -- An expired lease still belongs to its attempt until another holder takes it.
      continue when attempt.state <> 'running' or attempt.token <> given.token
        or (attempt.key is not null and not exists (select 1 from belfry.leases l where l.run = attempt.id));
      settled := settled || given.place::integer;
      if belfry.has_committed(attempt) then
        given.kind := 'succeeded';
        given.result := attempt.result;
        given.error := null;
      end if;
      attempt.settled_token := given.token;
      if given.kind = 'failed' or (given.kind = 'retry' and not attempt.cancel_requested) then
        attempt.failures := attempt.failures + 1;
      end if;
      if given.kind in ('retry', 'released') and not attempt.cancel_requested then
        if given.kind = 'retry' then
          attempt.error := given.error;
        end if;
        perform belfry.give_back(attempt, now_us / 1000 + coalesce(given.delay_ms, 0));
        hints := hints || 'runs'::belfry.hint;
      else
        perform belfry.end_run(attempt,
          case given.kind when 'succeeded' then 'succeeded' when 'failed' then 'failed' else 'cancelled' end::belfry.run_state,
          now_us / 1000, null, given.error, given.result);
        freed_schedules := freed_schedules || attempt.schedule;
        hints := hints || 'settled'::belfry.hint;
      end if;
      if attempt.key is not null then
        freed_keys := freed_keys || attempt.key;
        hints := hints || 'leases'::belfry.hint;
      end if;
    end loop;
  end if;
  hints := hints || belfry.pass_on(freed_keys, freed_schedules, now_us, 'wait');
end $$;
