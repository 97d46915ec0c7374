/**
 * The tables, in versions. Each migration is written once and never changed again; a file is brought up to date under
 * the write lock, so that any number of processes may start at once. The file may be the user's own: everything of
 * Belfry's is called `belfry_…`, and `user_version` is left alone.
 *
 * States are numbers so that partial indexes are small: 0 waiting, 1 ready, 2 running, from 3 on ended.
 */
import { failure, quote } from '../../core/errors.js'
import type { Connection } from './connection.js'

const MIGRATIONS: readonly string[] = [
  `
create table belfry_counters (
  id integer primary key check (id = 1),
  version integer not null, -- of schedules
  queued integer not null,  -- orders schedules that are due at the same instant
  ended integer not null,   -- orders runs by when they ended
  kept integer not null     -- how many ended runs there are
);
insert into belfry_counters values (1, 0, 0, 0, 0);

create table belfry_settings (name text primary key, value text not null) without rowid;

-- Apart from the schedule, which is written with every tick. What its runs are made of stands in columns.
create table belfry_definitions (
  id integer primary key autoincrement,
  schedule text not null,
  body text not null,       -- all but the payload
  payload text not null,
  target text not null,
  options text,
  priority integer not null,
  keep integer not null,
  key text,
  key_limit integer,
  key_waits integer,
  unstamped integer not null
);

create table belfry_schedules (
  seq integer primary key,
  id text not null unique,
  version integer not null,
  definition integer not null,
  anchor integer not null,
  cursor integer not null,
  remaining integer,
  next_at integer,          -- null when it is due_at
  due_at integer,
  queued integer not null,
  paused_at integer,
  pause_note text,
  created_at integer not null,
  updated_at integer not null,
  finished_at integer,
  target text not null,
  app text,
  unstamped integer not null,
  removable integer not null -- goes when it is finished and its history has gone
);
create index belfry_schedules_due on belfry_schedules (due_at, queued) where due_at is not null;
create index belfry_schedules_target on belfry_schedules (target, id);
create index belfry_schedules_app on belfry_schedules (app, id) where app is not null;
create index belfry_schedules_unstamped on belfry_schedules (id) where unstamped = 1;
create index belfry_schedules_paused on belfry_schedules (id) where paused_at is not null;
create index belfry_schedules_finished on belfry_schedules (finished_at, seq) where finished_at is not null;

create table belfry_skips (
  seq integer primary key autoincrement,
  schedule text not null,
  from_at integer not null,
  to_at integer not null,
  count integer not null,
  reason text not null,
  recorded_at integer not null
);
create index belfry_skips_schedule on belfry_skips (schedule, from_at);

create table belfry_runs (
  id integer primary key autoincrement,
  target text not null,
  options text,
  origin integer not null,
  schedule text,
  tick integer,
  backfill text,
  slot text,                -- '' for a tick, 'b/<name>' for a backfill: what must be unique at an instant
  payload text not null,
  priority integer not null,
  keep integer not null,
  key text,
  key_limit integer,
  key_waits integer,
  unstamped integer not null,
  dedupe text,
  dedupe_ms integer,
  state integer not null,
  waits_for integer not null,
  engaged integer not null, -- counts as unfinished of its schedule although it may not be due
  unlisted integer not null default 0, -- a tick that the index of open runs is spared: see unlisted-ticks.ts
  reason text,
  created_at integer not null,
  ready_at integer not null,
  start_by integer,
  attempt integer not null default 0,
  failures integer not null default 0,
  takeovers integer not null default 0,
  token integer,
  instance text,
  claim integer not null default 0,
  rescued integer not null default 0,
  committed integer not null default 0,
  settled_token integer,
  started_at integer,
  finished_at integer,
  ended integer,
  cancel integer not null default 0,
  result text,
  error text
);
create unique index belfry_runs_slot on belfry_runs (schedule, tick, slot) where schedule is not null;
-- Not by state, so that starting a run leaves it alone.
create index belfry_runs_open on belfry_runs (schedule, id)
  where schedule is not null and ended is null and waits_for <> 2 and unlisted = 0;
create index belfry_runs_overlap on belfry_runs (schedule, id) where state = 0 and waits_for = 2;
create index belfry_runs_stamp on belfry_runs (id) where state = 0 and waits_for = 1;
create index belfry_runs_claim on belfry_runs (target, priority, ready_at, id) where state = 1;
create index belfry_runs_running on belfry_runs (instance, claim) where state = 2;
create index belfry_runs_key_ready on belfry_runs (key, ready_at, id) where key is not null and state = 1;
create index belfry_runs_key_waiting on belfry_runs (key, waits_for, id) where key is not null and state = 0;
create index belfry_runs_key_begun on belfry_runs (key, id) where key is not null and state < 3 and attempt > 0;
create index belfry_runs_ended on belfry_runs (ended) where ended is not null;

create table belfry_dedupes (
  target text not null,
  dedupe text not null,
  run integer not null,
  until integer,            -- null while the run is unfinished
  primary key (target, dedupe)
) without rowid;
create index belfry_dedupes_until on belfry_dedupes (until) where until is not null;

create table belfry_leases (
  seq integer primary key,
  name text not null,
  holder text not null,
  token integer not null,
  acquired_at integer not null,
  expires_at integer,       -- of a lock; the lease of a run's key runs out with its instance's
  instance text,
  run integer,
  released integer not null default 0
);
create unique index belfry_leases_holder on belfry_leases (name, holder);
create unique index belfry_leases_run on belfry_leases (run) where run is not null;
create index belfry_leases_expiry on belfry_leases (expires_at) where run is null;

-- Outlives every holder, for the last token.
create table belfry_names (name text primary key, last_token integer not null, freed_at integer) without rowid;
create index belfry_names_freed on belfry_names (freed_at) where freed_at is not null;

create table belfry_waiters (
  seq integer primary key autoincrement,
  name text not null,
  holder text not null,
  ttl_ms integer not null,
  permits integer not null,
  instance text,
  floor integer not null,
  until integer not null
);
create unique index belfry_waiters_holder on belfry_waiters (name, holder);
create index belfry_waiters_name on belfry_waiters (name, seq);

create table belfry_instances (
  seq integer primary key autoincrement,
  id text not null unique,
  info text not null,
  app text,
  declarations text,
  joined_at integer not null,
  beat_at integer not null,
  expires_at integer not null,
  dead integer not null default 0,
  claims_settled integer not null
);
create index belfry_instances_expiry on belfry_instances (expires_at);

create table belfry_claims (
  instance text not null,
  claim integer not null,
  primary key (instance, claim)
) without rowid;

create table belfry_jobs (seq integer primary key, name text not null unique, info text not null);

create table belfry_declarations (
  seq integer primary key,
  app text not null,
  hash text not null,
  release text,
  schedules text not null,
  first_seen_at integer not null,
  alive_at integer not null,
  unique (app, hash)
);
`,
  `
create table belfry_records (
  kind text not null,
  id text not null,
  body text not null,
  written_at integer not null,
  expires_at integer,
  primary key (kind, id)
) without rowid;
create index belfry_records_expiry on belfry_records (expires_at) where expires_at is not null;
`,
]

export const SCHEMA_VERSION = MIGRATIONS.length

const NAMED = /create (?:table|(?:unique )?index) (belfry_\w+)/g
const NAMES = Array.from(MIGRATIONS.join('\n').matchAll(NAMED), ([, name]) => `'${name}'`).join(', ')

/** The statements that make our indexes, by their names. */
export const INDEXES: ReadonlyMap<string, string> = new Map(
  Array.from(MIGRATIONS.join('\n').matchAll(/create (?:unique )?index (belfry_\w+) on [^;]+/g), ([sql, name = '']) => [
    name,
    sql.replaceAll(/\s+/g, ' ').trim(),
  ]),
)

const META_COLUMNS = `select group_concat(name) from (select name from pragma_table_info('belfry_meta') order by cid)`
const OURS = `select min(name) from sqlite_master where name in ('belfry_meta', ${NAMES})`
const VERSION = `select value from belfry_meta where name = 'schema'`
const SET_VERSION = `insert or replace into belfry_meta (name, value) values ('schema', ?)`

/** The version of a file; 0 when Belfry has never been there. Refuses one with tables of somebody else's by our names. */
export function schemaVersion(db: Connection, file: string): number {
  // Our names first: another process may migrate between these reads, and then the later ones see all that it made.
  const [name] = db.get<[string | null]>(OURS) ?? []
  if (name === null || name === undefined) return 0
  const [columns] = db.get<[string | null]>(META_COLUMNS) ?? []
  const [version] = columns === 'name,value' ? (db.get<[number]>(VERSION) ?? []) : []
  if (version !== undefined) return version
  throw failure(
    'STORE_INVALID',
    `${file} has a ${quote(name)} that Belfry did not make: give Belfry a file of its own, or rename that table`,
  )
}

/** Refuses a file that a newer Belfry has written: it may hold what this one would not see. */
export function checkVersion(version: number, file: string): void {
  if (version <= SCHEMA_VERSION) return
  throw failure(
    'STORE_INVALID',
    `${file} was written by a newer Belfry (schema ${version}, this one knows ${SCHEMA_VERSION}): upgrade belfry here too`,
  )
}

const META = 'create table if not exists belfry_meta (name text primary key, value integer not null) without rowid'

/** Brings the file up to date, and answers from which version. Call it inside a write transaction. */
export function migrate(db: Connection, file: string): number {
  const version = schemaVersion(db, file)
  checkVersion(version, file)
  if (version === SCHEMA_VERSION) return version
  db.exec(META)
  for (const migration of MIGRATIONS.slice(version)) db.exec(migration)
  db.run(SET_VERSION, SCHEMA_VERSION)
  return version
}

/** The statements that `migrate` would run, for those who want to read them. */
export function migrationSql(from: number): string {
  if (from === SCHEMA_VERSION) return ''
  const statements = [META, ...MIGRATIONS.slice(from), SET_VERSION.replace('?', String(SCHEMA_VERSION))]
  return statements.map((sql) => `${sql.trim().replace(/;$/, '')};\n`).join('\n')
}
