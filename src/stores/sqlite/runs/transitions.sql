-- How runs change their state. Each statement names the states that it leads from, so that a wrong caller changes nothing.

-- statement: runById
select * from belfry_runs where id = :run;

-- statement: holdsKey
select 1 as held from belfry_leases where run = :run and token = :token;

-- statement: startRuns
-- ready → running. The token grows by at least one, and to at least :leastToken.
update belfry_runs
set state = 'running', engaged = 1, attempt = attempt + 1, takeovers = takeovers + orphaned, orphaned = 0, committed = 0,
  token = max(coalesce(token, 0) + 1, :leastToken), instance = :instance, claim = :claim, started_at = :now
where id in (select value from json_each(:runs)) and state = 'ready';

-- statement: makeReady
-- waiting | running → ready. A run that began counts as unfinished also while its next attempt is not due.
update belfry_runs
set state = 'ready', waits_for = null, ready_at = :readyAt, engaged = max(engaged, attempt > 0)
where id = :run and state in ('waiting', 'running');

-- statement: makeWait
-- waiting | ready | running → waiting.
update belfry_runs
set state = 'waiting', waits_for = :waitsFor, ready_at = :readyAt, engaged = 1
where id = :run and state in ('waiting', 'ready', 'running');

-- statement: endKept
-- waiting | ready | running → succeeded | failed | cancelled | skipped, and the run stays in the history.
update belfry_runs
set state = :state, waits_for = null, reason = :reason, result = :result, error = :error, finished_at = :now,
  end_order = (select coalesce(max(end_order), 0) + 1 from belfry_runs where end_order is not null)
where id = :run and state in ('waiting', 'ready', 'running');

-- statement: forgetRun
delete from belfry_runs where id = :run;

-- statement: reopen
-- failed | cancelled | skipped → ready, or waiting for its stamp. Failures and takeovers are counted from zero.
update belfry_runs
set state = iif(unstamped, 'waiting', 'ready'), waits_for = iif(unstamped, 'stamp', null), reason = null,
  ready_at = :now, start_by = null, engaged = max(engaged, attempt > 0, unstamped), failures = 0, takeovers = 0,
  orphaned = 0, cancel_requested = 0, finished_at = null, end_order = null, result = null, error = null
where id = :run and state in ('failed', 'cancelled', 'skipped');

-- statement: noteAttempt
-- What an attempt leaves on a run that will have another one.
update belfry_runs
set failures = :failures, error = :error, orphaned = :orphaned
where id = :run and state = 'running';

-- statement: noteSettled
update belfry_runs set settled_token = token, failures = failures + :failed where id = :run and state = 'running';

-- statement: requestCancel
update belfry_runs set cancel_requested = 1 where id = :run and state = 'running';

-- statement: stamp
-- The key of a run that waited for it.
update belfry_runs
set key = :key, key_limit = :keyLimit, key_when_busy = :keyWhenBusy, unstamped = 0
where id = :run and unstamped = 1;

-- statement: succeedPlain
-- running → succeeded, for many attempts at once that free nothing: no key, no dedupe key, no run that waits for the schedule.
update belfry_runs
set state = 'succeeded', settled_token = token, result = given.value ->> 'result', error = null, finished_at = :now,
  end_order = given.key + (select coalesce(max(end_order), 0) + 1 from belfry_runs where end_order is not null)
from json_each(:attempts) as given
where belfry_runs.id = given.value ->> 'run' and token = given.value ->> 'token'
  and state = 'running' and belfry_runs.key is null and dedupe is null and committed = 0 and keep = 'all'
  and not exists (select 1 from belfry_runs w where w.schedule = belfry_runs.schedule and w.waits_for = 'overlap')
returning belfry_runs.id, belfry_runs.mark, belfry_runs.token;

-- statement: forgetPlain
-- The same for runs that the history does not keep.
delete from belfry_runs
where (id, token) in (select value ->> 'run', value ->> 'token' from json_each(:attempts))
  and state = 'running' and key is null and dedupe is null and committed = 0 and keep <> 'all'
  and not exists (select 1 from belfry_runs w where w.schedule = belfry_runs.schedule and w.waits_for = 'overlap')
returning id, mark, token;
