-- The tables. `docs/postgres.md` describes them. Instants are milliseconds since 1970; the views show them as times.
--
-- Tables whose rows are updated often have free room on their pages (fillfactor) for new versions of the rows.
-- Most of them are vacuumed before 20 % of their rows are dead, the default, so that a large history does not delay it.

-- The time in microseconds. Every operation reads the clock here, so tests replace only this function.
create function belfry.now_us() returns bigint volatile parallel safe
  return (extract(epoch from clock_timestamp()) * 1000000)::bigint;

-- Whether the session with this proof-of-life number has ended: only then can another session take its advisory lock.
-- Null if the number is null. The first key of the locks is the oid of the schema's own sequence, so that two schemas
-- never clash.
create sequence belfry.proofs as integer cycle;
create function belfry.session_is_gone(session integer) returns boolean volatile
  return pg_try_advisory_xact_lock_shared('belfry.proofs'::regclass::oid::integer, session);

create sequence belfry.versions;   -- counts the versions of schedules
create sequence belfry.places;     -- orders schedules that are due at the same instant
create sequence belfry.endings;    -- orders runs by when they ended
create sequence belfry.run_ids;    -- the numbers in ids of runs

-- A run's id as users see it: its number and its random mark (core/runs/run-id.ts).
create function belfry.run_id(number bigint, mark bigint) returns text immutable parallel safe
  return number::text || '-' || lpad(to_hex(mark), 12, '0');

create table belfry.settings (name text primary key, value text not null);

-- What the author of a schedule wrote. It is apart from the schedule's progress, which is written with every tick.
create table belfry.definitions (
  id bigint primary key,             -- partly random: after a restore, no new id equals one that an instance has cached
  schedule text collate "C" not null,
  app text,
  target text not null,
  options text,
  body text not null,                -- the definition as JSON, without its payload
  payload text not null,
  priority integer not null,
  keep belfry.keep_policy not null,
  key text,
  key_limit integer,
  key_when_busy belfry.busy_policy,
  unstamped boolean not null         -- the key is unknown until an instance with the job's code computes it
);

create table belfry.schedules (
  id text collate "C" primary key,
  version bigint not null,
  definition bigint not null,
  next_at bigint,
  due_at bigint,                     -- when to plan it again; null while it is paused or finished
  place bigint not null,             -- orders schedules with the same due_at
  anchor bigint not null,
  cursor bigint not null,            -- ticks up to here have been recorded or skipped
  remaining bigint,
  paused_at bigint,
  pause_note text,
  created_at bigint not null,
  updated_at bigint not null,
  finished_at bigint,
  minds_overlap boolean not null,
  removable boolean not null         -- prune deletes it some time after it has finished
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
  reason belfry.skip_reason,         -- why the run was skipped
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
  dedupe_ms bigint,                  -- how long the dedupe key stays taken after the run has ended
  created_at bigint not null,
  ready_at bigint not null,
  start_by bigint,                   -- a first attempt that would start later is skipped
  by_deadline boolean,               -- start_by is the schedule's deadline; otherwise its missed policy set it
  started_at bigint,
  finished_at bigint,
  attempt integer not null default 0,
  failures integer not null default 0,
  takeovers integer not null default 0,
  taken_over boolean not null default false,        -- its last attempt's instance died; the next start counts that
  engaged boolean not null default false,           -- counts as unfinished for overlap even before ready_at
  cancel_requested boolean not null default false,
  instance text,
  claim bigint,
  token bigint,
  settled_token bigint,              -- token of the attempt that settled it, or whose transaction has committed
  ended bigint,                      -- orders the history by when runs ended
  result text,
  error text
) with (fillfactor = 45, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

create table belfry.dedupes (
  target text collate "C" not null,
  dedupe text collate "C" not null,
  run bigint not null,
  mark bigint not null,              -- the run's mark, kept here because the run may be deleted first
  until bigint,                      -- null while the run is unfinished
  primary key (target, dedupe)
);

-- A row for each name of a lock or key. An operation locks it before it reads anything about the name. The row outlives
-- the name's holders, because it keeps the last token.
create table belfry.lock_names (
  name text collate "C" primary key,
  last_token bigint not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- The holders of locks and keys. The lease of a run's key has no expiry of its own: it expires with the lease of the
-- run's instance.
create table belfry.leases (
  name text collate "C" not null,
  holder text collate "C" not null,
  token bigint not null,
  acquired_at bigint not null,
  expires_at bigint,
  instance text,
  run bigint,
  released boolean not null default false,          -- released, but kept until its minimum hold ends (expires_at)
  proof integer,
  primary key (name, holder)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Callers that wait for a lock, in order of seq.
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
  claims_settled bigint not null default -1,        -- claims up to this number are settled (runs/unheard-claims.sql)
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
