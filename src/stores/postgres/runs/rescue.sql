-- Takes over the runs of dead instances. Then it repairs queues: keys and schedules whose waiters nothing holds up any
-- more. A lease may expire without any operation that passes it on, and only this sweep notices that.
--
-- Locks: dead instances that no other transaction has locked, then as `take_over_attempts`. The repair waits for no
-- lock.
create or replace function belfry.rescue_runs(
  run_limit integer, out rescued integer, out lost integer, out hints belfry.hint[]
) language plpgsql as $$
declare
  now_us bigint := belfry.now_us();
  dead_ids text[];
begin
  perform belfry.durable();
  rescued := 0;
  lost := 0;
  hints := '{}';
  dead_ids := array(
    select i.id from belfry.instances i where i.expires_at <= now_us / 1000 or belfry.session_is_gone(i.proof)
    order by i.seq for update skip locked);
  if cardinality(dead_ids) > 0 then
    update belfry.instances i set dead = true where i.id = any (dead_ids) and not i.dead;
    select t.rescued, t.lost, t.hints into rescued, lost, hints
    from belfry.take_over_attempts(
      array(
        select a from unnest(dead_ids) d(id) cross join lateral belfry.attempts_of(d.id) a order by a.run limit run_limit),
      true, now_us) t;
    delete from belfry.instances i
    where i.id = any (dead_ids)
      and not exists (select 1 from belfry.runs r where r.instance = i.id and r.state = 'running');
  end if;
  hints := hints || belfry.repair(run_limit, now_us);
end $$;

-- Names that have waiters, each once. Steps from one name to the next, instead of reading all waiters. If there are
-- more than `up_to`, the choice is random, so that names which cannot go on do not keep the others out for ever.
create or replace function belfry.waited_for_names(up_to integer) returns text[] language plpgsql as $$
begin
  return array(
    with recursive locks (name) as (
      (select w.name from belfry.waiters w order by w.name limit 1)
      union all
      select (select w.name from belfry.waiters w where w.name > l.name order by w.name limit 1)
      from locks l where l.name is not null
    )
    select n.name
    from (select l.name from locks l union select q.queue from belfry.waiting_queues('key') q(queue)) n
    where n.name is not null
    order by random() limit up_to);
end $$;

-- The queues in which runs wait: the names of keys, or the schedules whose runs wait for each other.
create or replace function belfry.waiting_queues(awaited belfry.wait_reason) returns setof text language plpgsql as $$
begin
  return query
  with recursive queues (name) as (
    (select case when r.waits_for = 'key' then r.key else r.schedule end as name from belfry.runs r
      where r.state = 'waiting' and r.waits_for = awaited order by 1 limit 1)
    union all
    select (select case when r.waits_for = 'key' then r.key else r.schedule end from belfry.runs r
      where r.state = 'waiting' and r.waits_for = awaited
        and (case when r.waits_for = 'key' then r.key else r.schedule end) > q.name
      order by 1 limit 1)
    from queues q where q.name is not null
  )
  select q.name from queues q where q.name is not null;
end $$;

-- Whether the oldest waiter of a name could get a permit. Checked before the name is locked, because reading is
-- cheaper.
create or replace function belfry.could_go_on(lock_name text, now_ms bigint) returns boolean language plpgsql as $$
begin
  return coalesce(belfry.live_holders(lock_name, now_ms) < greatest(
    (select max(w.permits) from belfry.waiters w where w.name = lock_name),
    (belfry.oldest_waiting_for_key(lock_name)).key_limit), false);
end $$;

-- Passes on names and schedules whose waiters nothing holds up. If another transaction has locked one, that transaction
-- passes it on itself.
create or replace function belfry.repair(up_to integer, now_us bigint) returns belfry.hint[] language plpgsql as $$
declare
  hints belfry.hint[] := array[]::belfry.hint[];
  names text[] := array(
    select n.name from unnest(belfry.waited_for_names(up_to)) n(name) where belfry.could_go_on(n.name, now_us / 1000));
  schedule_id text;
begin
  if cardinality(names) > 0 then
    names := array(
      select n.name from belfry.lock_names n where n.name = any (names) order by n.name for update skip locked);
    hints := belfry.pass_on(names, '{}', now_us, 'leave');
  end if;
  for schedule_id in select * from belfry.waiting_queues('overlap') limit up_to loop
    if belfry.let_next_run_go(schedule_id, now_us / 1000, true) then
      hints := hints || 'runs'::belfry.hint;
    end if;
  end loop;
  return hints;
end $$;
