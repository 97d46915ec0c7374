-- statement: runById
select * from belfry_runs where id = :id;

-- statement: holdsKey
select 1 as held from belfry_leases where run = :run and token = :token;

-- statement: startRuns
-- ready → running. The token grows by at least one, and to at least :leastToken.
update belfry_runs
set state = 'running', engaged = 1, attempt = attempt + 1, takeovers = takeovers + orphaned, orphaned = 0, committed = 0,
  token = max(coalesce(token, 0) + 1, :leastToken), instance = :instance, claim = :claim, started_at = :now
where id in (select value from json_each(:runs)) and state = 'ready';

-- statement: writeRun
-- Writes what transitions.ts changes in a row. A run that ends gets its place among those that have ended.
update belfry_runs
set state = :state, waits_for = :waits_for, reason = :reason, key = :key, key_limit = :key_limit,
  key_when_busy = :key_when_busy, unstamped = :unstamped, ready_at = :ready_at, start_by = :start_by, engaged = :engaged,
  failures = :failures, takeovers = :takeovers, orphaned = :orphaned, cancel_requested = :cancel_requested,
  settled_token = :settled_token, finished_at = :finished_at, result = :result, error = :error,
  end_order = iif(:finished_at is null, null,
    coalesce(end_order, (select max(end_order) from belfry_runs where end_order is not null) + 1, 1))
where id = :id;

-- statement: succeedPlain
-- running → succeeded, for many attempts at once that free nothing: no key, no dedupe key, no run that waits for the schedule.
update belfry_runs
set state = 'succeeded', settled_token = token, result = given.value ->> 'result', error = null, finished_at = :now,
  end_order = given.key + (select coalesce(max(end_order), 0) + 1 from belfry_runs where end_order is not null)
from json_each(:attempts) as given
where belfry_runs.id = given.value ->> 'run' and token = given.value ->> 'token'
  and state = 'running' and belfry_runs.key is null and dedupe is null and committed = 0 and keep = 'all'
  and not exists (select 1 from belfry_runs w where w.schedule = belfry_runs.schedule and w.waits_for = 'overlap')
returning belfry_runs.id, belfry_runs.token;

-- statement: forgetPlain
-- The same for runs that the history does not keep.
delete from belfry_runs
where (id, token) in (select value ->> 'run', value ->> 'token' from json_each(:attempts))
  and state = 'running' and key is null and dedupe is null and committed = 0 and keep <> 'all'
  and not exists (select 1 from belfry_runs w where w.schedule = belfry_runs.schedule and w.waits_for = 'overlap')
returning id, token;

-- statement: forgetRun
delete from belfry_runs where id = :id;
