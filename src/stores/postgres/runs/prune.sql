-- Deletes old rows in bounded steps, from the old end of an index. So the cost depends on how much is deleted, and not
-- on how much is kept. Rows that another transaction has locked are left for the next call. Returns how many rows were
-- deleted.
--
-- The rows to delete are selected once, as an array. Postgres may execute `in (select … limit … skip locked)` again for
-- each row: it then skips the rows that it has already deleted, and deletes more than the limit.
create or replace function belfry.prune(
  max_age_ms bigint, max_runs bigint, lease_age_ms bigint, step_limit integer, out pruned integer
) language plpgsql as $$
declare
  now_us bigint := belfry.now_us();
  now_ms bigint := now_us / 1000;
begin
  pruned := belfry.prune_locks(now_us, lease_age_ms, step_limit);
  pruned := pruned + belfry.prune_runs(now_ms - max_age_ms, max_runs, step_limit - pruned);
  pruned := pruned + belfry.prune_schedules(now_ms, max_age_ms, step_limit - pruned);
  pruned := pruned + belfry.prune_names(now_ms - lease_age_ms, step_limit - pruned);
  pruned := pruned + belfry.prune_expired(now_ms, step_limit - pruned);
end $$;

-- Expired leases of locks that no holder released.
create or replace function belfry.prune_locks(now_us bigint, age_ms bigint, up_to integer) returns integer
language plpgsql as $$
declare
  expired_before bigint := now_us / 1000 - age_ms;
  names text[];
  count integer;
begin
  names := array(
    select n.name from belfry.lock_names n
    where n.name in (
      select l.name from belfry.leases l where l.run is null and l.expires_at <= expired_before
      order by l.expires_at limit up_to)
    for update skip locked);
  if cardinality(names) = 0 then
    return 0;
  end if;
  delete from belfry.leases l where l.run is null and l.expires_at <= expired_before and l.name = any (names);
  get diagnostics count = row_count;
  perform belfry.pass_on(names, '{}', now_us, 'wait');
  return least(count, up_to);
end $$;

-- Ended runs beyond the newest `max_runs`, and runs that ended before `ended_before`. Reads only the `up_to` runs that
-- ended first.
create or replace function belfry.prune_runs(ended_before bigint, max_runs bigint, up_to integer) returns integer
language plpgsql as $$
declare
  newest bigint;
  through bigint;
  count integer;
begin
  -- Endings are numbered, so comparing the first and the last number usually shows that there are fewer than
  -- `max_runs`.
  select r.ended into newest from belfry.runs r where r.ended is not null order by r.ended desc limit 1;
  select r.ended into through from belfry.runs r where r.ended is not null order by r.ended limit 1;
  if newest - through >= max_runs then
    select r.ended into through from belfry.runs r where r.ended is not null order by r.ended desc offset max_runs limit 1;
  else
    through := null;
  end if;
  delete from belfry.runs where id = any (array(
    select r.id from belfry.runs r
    where r.ended is not null and r.id = any (array(
      select o.id from (
        select id, ended, finished_at from belfry.runs where ended is not null order by ended limit up_to) o
      where o.ended <= through or o.finished_at <= ended_before))
    for update skip locked));
  get diagnostics count = row_count;
  return count;
end $$;

-- Old skips, and removable schedules that finished long ago and have no unfinished runs.
create or replace function belfry.prune_schedules(now_ms bigint, max_age_ms bigint, up_to integer) returns integer
language plpgsql as $$
declare
  skips integer;
  schedules integer;
begin
  delete from belfry.skips where seq = any (array(
    select o.seq from (
      select seq, recorded_at from belfry.skips order by seq limit up_to for update skip locked) o
    where o.recorded_at <= now_ms - max_age_ms));
  get diagnostics skips = row_count;
  with gone as (
    delete from belfry.schedules where id = any (array(
      select s.id from belfry.schedules s
      where s.finished_at <= now_ms - max_age_ms and s.removable
        and not exists (
          select 1 from belfry.runs r
          where r.schedule = s.id and r.state < 'succeeded' and (r.engaged or r.ready_at <= now_ms))
      order by s.finished_at limit up_to - skips for update skip locked))
    returning definition
  )
  delete from belfry.definitions where id in (select g.definition from gone g);
  get diagnostics schedules = row_count;
  return skips + schedules;
end $$;

-- Names of locks and keys that have not been used for a long time. An index by age would cost a write with every grant.
-- Instead each call goes on, in order of name, where the last one ended.
create or replace function belfry.prune_names(unused_since bigint, up_to integer) returns integer language plpgsql as $$
declare
  walked_to text collate "C" :=
    coalesce((select s.value from belfry.settings s where s.name = 'pruned_names'), '');
  names text[];
  count integer := 0;
begin
  names := array(select n.name from belfry.lock_names n where n.name > walked_to order by n.name limit up_to);
  if up_to > 0 and (walked_to <> '' or cardinality(names) = up_to) then
    insert into belfry.settings (name, value)
    values ('pruned_names', case when cardinality(names) = up_to then names[up_to] else '' end)
    on conflict on constraint settings_pkey do update set value = excluded.value;
  end if;
  delete from belfry.lock_names where name = any (array(
    select n.name from belfry.lock_names n
    where n.name = any (names) and n.last_token <= unused_since * 1000
      and not exists (select 1 from belfry.leases l where l.name = n.name)
      and not exists (select 1 from belfry.waiters w where w.name = n.name)
      and not exists (select 1 from belfry.runs r where r.key = n.name and r.state < 'succeeded')
    for update skip locked));
  get diagnostics count = row_count;
  return count;
end $$;

-- Expired dedupe keys and records.
create or replace function belfry.prune_expired(now_ms bigint, up_to integer) returns integer language plpgsql as $$
declare
  dedupes integer;
  records integer;
begin
  delete from belfry.dedupes where ctid = any (array(
    select d.ctid from belfry.dedupes d where d.until <= now_ms order by d.until limit up_to
    for update skip locked));
  get diagnostics dedupes = row_count;
  delete from belfry.records where ctid = any (array(
    select r.ctid from belfry.records r where r.expires_at <= now_ms order by r.expires_at limit up_to - dedupes
    for update skip locked));
  get diagnostics records = row_count;
  return dedupes + records;
end $$;
