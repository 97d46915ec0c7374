-- Enum types, and the composite types of lists that operations take.

-- Unfinished states come first, so `state < 'succeeded'` means that a run has not ended.
create type belfry.run_state as enum ('waiting', 'ready', 'running', 'succeeded', 'failed', 'cancelled', 'skipped');
create type belfry.wait_reason as enum ('nothing', 'stamp', 'overlap', 'key');
create type belfry.run_origin as enum ('tick', 'trigger', 'backfill', 'enqueue');
create type belfry.keep_policy as enum ('all', 'failures', 'none');
create type belfry.busy_policy as enum ('skip', 'wait');
create type belfry.overlap_policy as enum ('allow', 'skip', 'queue-one', 'queue-all', 'cancel-running');
create type belfry.skip_reason as enum ('missed', 'deadline', 'overlap', 'busy', 'paused', 'replaced', 'removed');
create type belfry.outcome_kind as enum ('succeeded', 'failed', 'retry', 'released', 'cancelled');

-- Hints: the kinds of data that an operation changed. `granted`: a lock was handed to its next waiter, which can go on
-- at once, so its hint is sent without the usual pause.
create type belfry.hint as enum ('schedules', 'runs', 'leases', 'attempts', 'settled', 'granted');

-- A run to be created. Without `ready_at` it is ready after `delay_ms`. `check_key`: the run is refused while its key
-- is busy.
create type belfry.new_run as (
  target text, options text, origin belfry.run_origin, schedule text, tick bigint, backfill text,
  payload text, priority integer, keep belfry.keep_policy, ready_at bigint, delay_ms bigint,
  key text, key_limit integer, key_when_busy belfry.busy_policy, unstamped boolean, check_key boolean,
  dedupe text, dedupe_ms bigint, overlap belfry.overlap_policy
);

-- How an attempt ended.
create type belfry.settlement as (
  run bigint, token bigint, kind belfry.outcome_kind, result text, error text, delay_ms bigint
);

-- An attempt, as its instance reports it.
create type belfry.attempt as (run bigint, token bigint);

-- The key for a run that waits for its stamp. A null key means that the job is not exclusive.
create type belfry.stamp as (run bigint, mark bigint, key text, key_limit integer, key_when_busy belfry.busy_policy);

-- `remote`: the holder is outside of the calling process, so that process's proof of life says nothing about the
-- holder.
create type belfry.acquisition as (
  name text, holder text, ttl_ms bigint, permits integer, instance text, floor bigint, wait_ms bigint, remote boolean
);
create type belfry.renewal as (name text, holder text, token bigint, ttl_ms bigint);
create type belfry.release as (name text, holder text, min_hold_ms bigint);

-- The planned progress of a due schedule. With `mind_overlap`, the plan is written only if the schedule's unfinished
-- runs, as text, still equal `made_from`.
create type belfry.schedule_progress as (
  schedule text, moves boolean, cursor bigint, remaining bigint, next_at bigint, due_at bigint, finished_at bigint,
  retract_through bigint, cancel_unfinished boolean, mind_overlap boolean, made_from text
);
create type belfry.planned_tick as (
  schedule text, definition bigint, at bigint, ready_at bigint, start_by bigint, by_deadline boolean,
  waits boolean, key text
);
create type belfry.planned_skip as (schedule text, from_at bigint, to_at bigint, count bigint, reason belfry.skip_reason);

-- A change of a schedule: the mark that was read, what happens to its unclaimed ticks, and its new columns.
create type belfry.schedule_change as (
  id text, mark text, removed boolean, redefined boolean, version bigint, definition bigint,
  unclaimed bigint[], forgotten_ticks bigint[], skipped_ticks bigint[], skip_reason belfry.skip_reason, skips json,
  app text, body text, payload text, target text, options text, priority integer, keep belfry.keep_policy,
  key text, key_limit integer, key_when_busy belfry.busy_policy, unstamped boolean,
  anchor bigint, cursor bigint, remaining bigint, next_at bigint, due_at bigint, paused_at bigint, pause_note text,
  created_at bigint, updated_at bigint, finished_at bigint, minds_overlap boolean, removable boolean
);

create type belfry.job_declaration as (name text, info text);
