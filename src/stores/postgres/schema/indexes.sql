-- The indexes. Each index on runs adds a microsecond or more to every write of a run, so they are few and partial.

create index definitions_target on belfry.definitions (target, schedule);
create index definitions_app on belfry.definitions (app, schedule) where app is not null;
create index definitions_unstamped on belfry.definitions (schedule) where unstamped;

create index schedules_due on belfry.schedules (due_at, place) where due_at is not null;
create index schedules_paused on belfry.schedules (id) where paused_at is not null;
create index schedules_finished on belfry.schedules (finished_at) where finished_at is not null and removable;

create index skips_schedule on belfry.skips (schedule, from_at);

-- A tick is unique by schedule and instant, a backfilled run also by the name of its backfill. The instant is the first
-- column, so that ticks which are recorded together lie together: one tick of ten thousand schedules changes some
-- hundred pages instead of ten thousand.
create unique index runs_tick on belfry.runs (tick, schedule, coalesce(backfill, '')) where origin in ('tick', 'backfill');

-- The runs of a schedule, in two indexes. Unfinished runs are read all the time, and must not be searched for among the
-- schedule's history.
create index runs_history on belfry.runs (schedule, id) where schedule is not null and state >= 'succeeded';
create index runs_open on belfry.runs (schedule, waits_for, id) where schedule is not null and state < 'succeeded';

-- Unfinished runs without a schedule, by target. Their owner follows from the target, and the number of each tenant's
-- unfinished runs is limited.
create index runs_alone on belfry.runs (target) where schedule is null and state < 'succeeded';

-- The queues of waiting runs: for runs that wait for a key, by the key's name; for the others, by their schedule.
create index runs_waiting on belfry.runs (waits_for, (case when waits_for = 'key' then key else schedule end), id)
  where state = 'waiting';

create index runs_ready on belfry.runs (target, priority desc, ready_at, id) where state = 'ready';
create index runs_running on belfry.runs (instance, claim) where state = 'running';
create index runs_key on belfry.runs (key, state, id) where key is not null and state < 'succeeded';
create index runs_ended on belfry.runs (ended) where ended is not null;

create index dedupes_until on belfry.dedupes (until) where until is not null;

create unique index leases_run on belfry.leases (run) where run is not null;
create index leases_expiry on belfry.leases (expires_at) where run is null;
create index waiters_name on belfry.waiters (name, seq);

create index records_expiry on belfry.records (expires_at) where expires_at is not null;
