create index belfry_schedules_due on belfry_schedules (due_at, line) where due_at is not null;
create index belfry_schedules_target on belfry_schedules (target, id);
create index belfry_schedules_app on belfry_schedules (app, id) where app is not null;
create index belfry_schedules_unstamped on belfry_schedules (id) where unstamped = 1;
create index belfry_schedules_paused on belfry_schedules (id) where paused_at is not null;
create index belfry_schedules_finished on belfry_schedules (finished_at) where finished_at is not null;

create index belfry_skips_schedule on belfry_skips (schedule, from_at);

-- A tick and a backfill are unique at their instant; a trigger is not, and has null there.
create unique index belfry_runs_schedule on belfry_runs (
  schedule, tick, (case origin when 'tick' then '' when 'backfill' then 'b/' || backfill end)
) where schedule is not null;
-- The unfinished runs of a schedule: in two indexes, because thousands may wait for one run; without the state, so that starting
-- a run changes neither.
create index belfry_runs_open on belfry_runs (schedule, id)
  where schedule is not null and finished_at is null and waits_for is not 'overlap';
create index belfry_runs_overlap on belfry_runs (schedule, id) where waits_for = 'overlap';
-- Unfinished runs without a schedule, by what decides to whom they belong: their number is limited for each tenant.
create index belfry_runs_alone on belfry_runs (target) where schedule is null and finished_at is null;
create index belfry_runs_stamp on belfry_runs (id) where waits_for = 'stamp';
create index belfry_runs_claim on belfry_runs (target, priority, ready_at, id) where state = 'ready';
create index belfry_runs_running on belfry_runs (instance, claim) where state = 'running';
create index belfry_runs_key_ready on belfry_runs (key, ready_at, id) where key is not null and state = 'ready';
create index belfry_runs_key_waiting on belfry_runs (key, waits_for, id) where key is not null and state = 'waiting';
create index belfry_runs_key_begun on belfry_runs (key, id) where key is not null and finished_at is null and attempt > 0;
create index belfry_runs_ended on belfry_runs (end_order) where end_order is not null;

create index belfry_dedupes_until on belfry_dedupes (until) where until is not null;

create unique index belfry_leases_holder on belfry_leases (name, holder);
create unique index belfry_leases_run on belfry_leases (run) where run is not null;
create index belfry_leases_expiry on belfry_leases (expires_at) where expires_at is not null;
create index belfry_names_freed on belfry_names (freed_at) where freed_at is not null;
create unique index belfry_waiters_holder on belfry_waiters (name, holder);
create index belfry_waiters_line on belfry_waiters (name, place);

create index belfry_instances_expiry on belfry_instances (expires_at);
create index belfry_records_expiry on belfry_records (expires_at) where expires_at is not null;
