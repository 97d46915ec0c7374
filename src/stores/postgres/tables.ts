/**
 * The tables and their indexes. `docs/postgres.md` says why each is there.
 *
 * - Whatever is updated all the time has room on its pages (fillfactor) and is vacuumed by number of dead rows, not by a
 *   share of the table, so that a large history does not put it off.
 * - What a schedule's author wrote is apart from where the schedule has got to, because that is written with every tick.
 * - Indexes are partial: an unkeyed run that was enqueued stands in the primary key and in one other.
 */
import { LINE } from './waiting-line.js'

export const TABLES = `
-- The store's time in microseconds. Everything asks here and nowhere else.
create function belfry.now_us() returns bigint language sql volatile parallel safe
  as $$ select (extract(epoch from clock_timestamp()) * 1000000)::bigint $$;

create sequence belfry.versions;   -- of schedules; their definitions have the same numbers
create sequence belfry.places;     -- orders schedules that are due at the same instant
create sequence belfry.endings;    -- orders runs by when they ended
create sequence belfry.run_ids;

create table belfry.settings (name text primary key, value text not null);

create table belfry.definitions (
  id bigint primary key,
  schedule text collate "C" not null,
  app text,
  body text not null,                -- all but the payload
  payload text not null,
  target text not null,
  options text,
  priority integer not null,
  keep smallint not null,
  key text,
  key_limit integer,
  key_waits boolean,
  unstamped boolean not null
);
create index definitions_target on belfry.definitions (target, schedule);
create index definitions_app on belfry.definitions (app, schedule) where app is not null;
create index definitions_unstamped on belfry.definitions (schedule) where unstamped;

create table belfry.schedules (
  version bigint not null,
  definition bigint not null,
  anchor bigint not null,
  cursor bigint not null,
  due_at bigint,
  place bigint not null,
  next_at bigint,
  remaining bigint,
  paused_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  finished_at bigint,
  minds_overlap boolean not null,
  removable boolean not null,        -- goes when it is finished and its history has gone
  id text collate "C" primary key,
  pause_note text
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
create index schedules_due on belfry.schedules (due_at, place) where due_at is not null;
create index schedules_paused on belfry.schedules (id) where paused_at is not null;
create index schedules_finished on belfry.schedules (finished_at) where finished_at is not null and removable;

create table belfry.skips (
  seq bigint generated always as identity primary key,
  from_at bigint not null,
  to_at bigint not null,
  recorded_at bigint not null,
  count bigint not null,
  schedule text collate "C" not null,
  reason text not null
);
create index skips_schedule on belfry.skips (schedule, from_at);

create table belfry.runs (
  id bigint primary key,
  tick bigint,
  created_at bigint not null,
  ready_at bigint not null,
  start_by bigint,
  token bigint,
  claim bigint not null default 0,
  settled_token bigint,
  started_at bigint,
  finished_at bigint,
  ended bigint,
  dedupe_ms bigint,
  priority integer not null,
  key_limit integer,
  attempt integer not null default 0,
  failures integer not null default 0,
  takeovers integer not null default 0,
  origin smallint not null,
  keep smallint not null,
  state smallint not null,
  waits_for smallint not null default 0,
  running boolean not null default false,  -- apart from the state, so that to start a run changes nothing that an index has
  key_waits boolean,
  unstamped boolean not null,
  engaged boolean not null,          -- counts as unfinished of its schedule although it may not be due
  rescued boolean not null default false,
  cancel boolean not null default false,
  target text collate "C" not null,
  schedule text collate "C",
  payload text not null,
  options text,
  backfill text,
  key text collate "C",
  dedupe text,
  reason text,
  instance text,
  result text,
  error text
) with (fillfactor = 45, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- Every index here costs a run a microsecond or more each time it is written, also those that it does not stand in: so
-- they are few. A tick is unique among ticks, a backfill among those of its name. By instant first: what is recorded at the
-- same time stands together, and a tick of ten thousand schedules changes some hundred pages and not ten thousand.
create unique index runs_tick on belfry.runs (tick, schedule, coalesce(backfill, '')) where origin in (0, 2);
-- Two halves of one: what is unfinished is looked at all the time, and never among the history.
create index runs_history on belfry.runs (schedule, id) where schedule is not null and state >= 3;
create index runs_open on belfry.runs (schedule, waits_for, id) where schedule is not null and state < 3;
-- What waits, and what has been under way for long: nobody has to pass over either to find what is ready.
create index runs_waiting on belfry.runs (waits_for, (${LINE}), id) where state in (0, 2);
create index runs_claim on belfry.runs (target, priority desc, ready_at, id) where state = 1;
create index runs_key on belfry.runs (key, state, id) where key is not null and state < 3;
create index runs_ended on belfry.runs (ended) where ended is not null;

-- What each claim gave. Every run that runs is in its claim's row, and the row goes when nothing of it runs any more.
create table belfry.claims (
  claim bigint not null,
  instance text not null,
  runs bigint[] not null,
  primary key (instance, claim)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table belfry.dedupes (
  target text not null,
  dedupe text not null,
  run bigint not null,
  until bigint,                      -- null while the run is unfinished
  primary key (target, dedupe)
);
create index dedupes_until on belfry.dedupes (until) where until is not null;

-- The row to lock before anything about a name is looked at. It outlives every holder, for the last token.
create table belfry.names (
  name text collate "C" primary key,
  last_token bigint not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

create table belfry.leases (
  seq bigint generated always as identity,
  token bigint not null,
  acquired_at bigint not null,
  expires_at bigint,                 -- of a lock; the lease of a run's key runs out with its instance's
  run bigint,
  released boolean not null default false,
  name text collate "C" not null,
  holder text collate "C" not null,
  instance text,
  primary key (name, holder)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
create unique index leases_run on belfry.leases (run) where run is not null;
create index leases_expiry on belfry.leases (expires_at) where run is null;

create table belfry.waiters (
  seq bigint generated always as identity,
  ttl_ms bigint not null,
  floor bigint not null,
  until bigint not null,
  permits integer not null,
  name text collate "C" not null,
  holder text collate "C" not null,
  instance text,
  primary key (name, holder)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
create index waiters_name on belfry.waiters (name, seq);

create table belfry.instances (
  seq bigint generated always as identity,
  joined_at bigint not null,
  beat_at bigint not null,
  expires_at bigint not null,
  last_claim bigint not null default -1,
  dead boolean not null default false,
  id text primary key,
  info text not null,
  app text,
  declarations text
) with (fillfactor = 50);

create table belfry.jobs (
  seq bigint generated always as identity,
  name text primary key,
  info text not null
);

create table belfry.declarations (
  seq bigint generated always as identity,
  first_seen_at bigint not null,
  alive_at bigint not null,
  app text not null,
  hash text not null,
  release text,
  schedules text not null,
  primary key (app, hash)
) with (fillfactor = 50);
`
