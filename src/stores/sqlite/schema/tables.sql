-- What Belfry keeps in a SQLite file. To look at it, use the views of views.sql: belfry_run, belfry_schedule, belfry_lock
-- and belfry_instance. The file may be the user's own, so everything here is called belfry_…, and user_version is left alone.
--
-- Instants and durations are milliseconds, since 1970 for instants. Yes and no are 1 and 0. A target is 'job:<name>' or
-- 'sink:<name>'. Payloads, results, errors, definitions and options are JSON.

-- Numbers that only grow.
create table belfry_counters (name text primary key, value integer not null) without rowid;
insert into belfry_counters values ('schedule version', 0);  -- the last one that was given

create table belfry_settings (name text primary key, value text not null) without rowid;

create table belfry_schedules (
  id text primary key not null,
  version integer not null,
  target text not null,
  app text,                       -- whose code declares it
  definition text not null,       -- the definition without its payload
  payload text not null,

  -- What its runs get.
  options text,
  priority integer not null,
  keep text not null,             -- all, failures, none
  key text,
  key_limit integer,
  key_when_busy text,             -- wait, skip
  unstamped integer not null,     -- an instance with the job's code has yet to compute the key

  anchor integer not null,        -- intervals are counted from here
  cursor integer not null,        -- every tick up to here is accounted for
  remaining integer,              -- ticks that may still be recorded, where that is limited
  next_at integer,                -- the next tick
  due_at integer,                 -- when to plan it again; null while it is paused or finished
  line integer not null,          -- its place among schedules that are due at the same instant
  created_at integer not null,
  updated_at integer not null,
  paused_at integer,
  pause_note text,
  finished_at integer,
  on_finish text not null         -- remove (when it has finished and its history is old), keep
);

-- Ranges of ticks that never became a run, or whose run is not kept.
create table belfry_skips (
  place integer primary key autoincrement,
  schedule text not null,
  from_at integer not null,
  to_at integer not null,
  count integer not null,
  reason text not null,
  recorded_at integer not null
);

create table belfry_runs (
  id integer primary key autoincrement,         -- the number in the id that users see; grows from run to run
  mark text not null default (lower(hex(randomblob(6)))),     -- the random part of that id
  state text not null,            -- waiting, ready, running, succeeded, failed, cancelled, skipped
  waits_for text,                 -- of a waiting run: stamp, overlap, key
  reason text,                    -- of a skipped run
  target text not null,
  options text,
  origin text not null,           -- tick, trigger, backfill, enqueue
  schedule text,
  tick integer,
  backfill text,                  -- its name
  payload text not null,
  priority integer not null,
  keep text not null,
  key text,
  key_limit integer,
  key_when_busy text,
  unstamped integer not null,
  dedupe text,
  dedupe_ms integer,              -- how long its dedupe key refuses others after its end

  created_at integer not null,
  ready_at integer not null,
  start_by integer,               -- after this a first attempt comes too late
  by_deadline integer,            -- start_by is the schedule's deadline; otherwise its missed policy set it
  engaged integer not null,       -- counts as unfinished of its schedule even before it is due
  attempt integer not null default 0,
  failures integer not null default 0,
  takeovers integer not null default 0,
  orphaned integer not null default 0,          -- its instance died with it: the next attempt is a takeover
  token integer,                  -- of the newest attempt
  instance text,
  claim integer,                  -- the number of the claim that started it
  started_at integer,
  cancel_requested integer not null default 0,
  committed integer not null default 0,         -- its transaction has committed: however the attempt ends, it has succeeded
  settled_token integer,          -- the token of the last settlement: the same one again changes nothing

  finished_at integer,
  end_order integer,              -- its place among the runs that ended
  result text,
  error text
);

-- Dedupe keys that refuse further runs: of unfinished runs, and for a while after their end.
create table belfry_dedupes (
  target text not null,
  dedupe text not null,
  run integer not null,
  mark text not null,             -- of the run, which the history may not keep
  until integer,                  -- null while the run is unfinished
  primary key (target, dedupe)
) without rowid;

-- One row for each holder of a lock or of a run's key. locks/acquire.ts explains the protocol.
create table belfry_leases (
  place integer primary key,
  name text not null,
  holder text not null,
  token integer not null,
  run integer,                    -- set for a run's key
  instance text,
  acquired_at integer not null,
  expires_at integer,             -- null for a run's key, which expires with its instance
  released integer not null default 0           -- given back before its minimum hold was over
);

-- Locks that wait, oldest first.
create table belfry_waiters (
  place integer primary key autoincrement,
  name text not null,
  holder text not null,
  ttl_ms integer not null,
  permits integer not null,
  instance text,
  floor integer not null,
  until integer not null
);

-- The last token of each lock and key. A row outlives every holder.
create table belfry_names (name text primary key, last_token integer not null, freed_at integer) without rowid;

create table belfry_instances (
  place integer primary key autoincrement,
  id text not null unique,
  app text,
  declarations text,
  info text not null,
  joined_at integer not null,
  beat_at integer not null,
  expires_at integer not null,
  dead integer not null default 0,              -- declared dead: what it ran is being taken over
  claims_settled integer not null -- claims up to this number were answered, or have failed
);

create table belfry_jobs (place integer primary key, name text not null unique, info text not null);

create table belfry_declarations (
  place integer primary key,
  app text not null,
  hash text not null,
  release text,
  schedules text not null,
  first_seen_at integer not null,
  alive_at integer not null,
  unique (app, hash)
);

create table belfry_records (
  kind text not null,
  id text not null,
  body text not null,
  written_at integer not null,
  expires_at integer,
  primary key (kind, id)
) without rowid;
