-- The tables. `docs/postgres.md` describes them. Instants are milliseconds since 1970; the views show them as times.
--
-- Rows that are updated all the time have room on their pages (fillfactor), and are vacuumed by number of dead rows
-- instead of by a share of the table: a large history must not put that off.

-- The time in microseconds. Every operation reads it here, so tests replace this one function.
create function belfry.now_us() returns bigint volatile parallel safe
  return (extract(epoch from clock_timestamp()) * 1000000)::bigint;

-- Whether the session that proves life with this number is gone: only then somebody else gets its advisory lock. Null
-- without a number. The class of the locks is the oid of the schema's own sequence, so that two schemas never meet.
create sequence belfry.proofs as integer cycle;
create function belfry.session_is_gone(session integer) returns boolean volatile
  return pg_try_advisory_xact_lock_shared('belfry.proofs'::regclass::oid::integer, session);

create sequence belfry.versions;   -- counts the versions of schedules
create sequence belfry.places;     -- orders schedules that are due at the same instant
create sequence belfry.endings;    -- orders runs by when they ended
create sequence belfry.run_ids;    -- the numbers in ids of runs

-- A run's id as users see it: its number and its mark (core/runs/run-id.ts).
create function belfry.run_id(number bigint, mark bigint) returns text immutable parallel safe
  return number::text || '-' || lpad(to_hex(mark), 12, '0');

create table belfry.settings (name text primary key, value text not null);

-- What the author of a schedule wrote. It is apart from its progress, which is written with every tick.
create table belfry.definitions (
  id bigint primary key,             -- partly random: instances remember definitions, and must not take another for one
  schedule text collate "C" not null,
  app text,
  target text not null,
  options text,
  body text not null,                -- all but the payload
  payload text not null,
  priority integer not null,
  keep belfry.keep_policy not null,
  key text,
  key_limit integer,
  key_when_busy belfry.busy_policy,
  unstamped boolean not null         -- its key waits for an instance that has the job's code
);

create table belfry.schedules (
  id text collate "C" primary key,
  version bigint not null,
  definition bigint not null,
  next_at bigint,
  due_at bigint,                     -- when to plan it again; null while it is paused or finished
  place bigint not null,             -- among those that are due at the same instant
  anchor bigint not null,
  cursor bigint not null,            -- ticks up to here are accounted for
  remaining bigint,
  paused_at bigint,
  pause_note text,
  created_at bigint not null,
  updated_at bigint not null,
  finished_at bigint,
  minds_overlap boolean not null,
  removable boolean not null         -- goes when it is finished and its history has gone
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

create table belfry.skips (
  seq bigint generated always as identity primary key,
  schedule text collate "C" not null,
  from_at bigint not null,
  to_at bigint not null,
  count bigint not null,
  reason belfry.skip_reason not null,
  recorded_at bigint not null
);

create table belfry.runs (
  id bigint primary key,             -- the number in the id that users see; grows from run to run
  mark bigint not null default floor(random() * 281474976710656)::bigint,          -- the random part of that id
  target text collate "C" not null,
  origin belfry.run_origin not null,
  state belfry.run_state not null,
  waits_for belfry.wait_reason not null default 'nothing',
  reason belfry.skip_reason,         -- why it was skipped
  schedule text collate "C",
  tick bigint,
  backfill text,
  priority integer not null,
  payload text not null,
  options text,
  keep belfry.keep_policy not null,
  key text collate "C",
  key_limit integer,
  key_when_busy belfry.busy_policy,
  unstamped boolean not null default false,
  dedupe text collate "C",
  dedupe_ms bigint,                  -- how long its dedupe key outlives it
  created_at bigint not null,
  ready_at bigint not null,
  start_by bigint,                   -- after this a first attempt comes too late
  by_deadline boolean,               -- start_by is the schedule's deadline; otherwise its missed policy set it
  started_at bigint,
  finished_at bigint,
  attempt integer not null default 0,
  failures integer not null default 0,
  takeovers integer not null default 0,
  taken_over boolean not null default false,        -- its last attempt died with its instance: the next start counts that
  engaged boolean not null default false,           -- an unfinished run of its schedule, although it may not be due
  cancel_requested boolean not null default false,
  instance text,
  claim bigint,
  token bigint,
  settled_token bigint,              -- of the attempt that settled it, or whose transaction has committed
  ended bigint,                      -- orders the history
  result text,
  error text
) with (fillfactor = 45, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

create table belfry.dedupes (
  target text collate "C" not null,
  dedupe text collate "C" not null,
  run bigint not null,
  mark bigint not null,              -- of the run, which the history may not keep
  until bigint,                      -- null while the run is unfinished
  primary key (target, dedupe)
);

-- The row to lock before anything about a lock or a key is looked at. It outlives every holder, for the last token.
create table belfry.lock_names (
  name text collate "C" primary key,
  last_token bigint not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Who holds a lock or a key. The lease of a run's key has no time of its own: it runs out with its instance's.
create table belfry.leases (
  name text collate "C" not null,
  holder text collate "C" not null,
  token bigint not null,
  acquired_at bigint not null,
  expires_at bigint,
  instance text,
  run bigint,
  released boolean not null default false,          -- given back, and held on to until it expires
  proof integer,
  primary key (name, holder)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Who waits for a lock, oldest first.
create table belfry.waiters (
  seq bigint generated always as identity,
  name text collate "C" not null,
  holder text collate "C" not null,
  until bigint not null,
  ttl_ms bigint not null,
  permits integer not null,
  floor bigint not null,
  instance text,
  proof integer,
  primary key (name, holder)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

create table belfry.instances (
  seq bigint generated always as identity,
  id text primary key,
  joined_at bigint not null,
  beat_at bigint not null,
  expires_at bigint not null,
  dead boolean not null default false,
  claims_settled bigint not null default -1,        -- every claim up to this number was answered
  proof integer,
  app text,
  declarations text,
  info text not null
) with (fillfactor = 50);

create table belfry.jobs (
  seq bigint generated always as identity,
  name text primary key,
  info text not null
);

create table belfry.declarations (
  seq bigint generated always as identity,
  app text not null,
  hash text not null,
  release text,
  schedules text not null,
  first_seen_at bigint not null,
  alive_at bigint not null,
  primary key (app, hash)
) with (fillfactor = 50);

create table belfry.records (
  kind text collate "C" not null,
  id text collate "C" not null,
  body text not null,
  written_at bigint not null,
  expires_at bigint,
  primary key (kind, id)
);
