-- Locking rows in one order, so that no two operations wait for each other in a circle. Every operation goes down this
-- list and never back up; within a line it goes in the order that the line names.
--
--   1. instances
--   2. schedules, by id: first those that it makes, then those that exist. Before that, the right to change schedules:
--      together with others, or alone
--   3. names of locks and keys, by name: first those that it makes, then those that exist. Leases and waiters belong to
--      their name, and only the transaction that holds the name touches them
--   4. runs outside of the queues of line 6, by id. One that has a key only with its key's name locked, so that runs of one key never need an order
--   5. dedupe keys, by target and key
--   6. queues of runs that wait for others of their schedule, by number: every operation ends with passing on to those.
--      Only the transaction that holds a queue touches the runs in it
--   7. jobs, then declarations
--
-- So an operation finds out what it will need, locks it line by line, and only then looks and decides. A row that came
-- into being in between would be locked out of turn. For that no operation waits: `take_…` gives up and tries again,
-- `try_…` says that another transaction has it.
--
-- A claim comes from the other end, from a run to its key. So it locks its instance before any run, and then waits for no
-- run, name or dedupe key: what another transaction has locked is left for a later claim. Making room for another holder,
-- rescue, repair and prune also take only what is unlocked wherever they would have to go back up.
--
-- A transaction of a caller's own may lock our rows in any order (`enqueue` with `tx`). If that ends in a deadlock,
-- Postgres aborts one of both, and an operation of ours tries again.

-- Makes the names that do not exist yet, in order. Whatever makes a run with a key does this first.
create or replace function belfry.make_names(wanted text[]) returns void language plpgsql as $$
begin
  insert into belfry.lock_names (name)
  select missing.name
  from (select distinct w.name collate "C" as name from unnest(wanted) w(name) where w.name is not null) missing
  where not exists (select 1 from belfry.lock_names n where n.name = missing.name)
  order by missing.name
  on conflict do nothing;
end $$;

-- Locks names, in order, and makes those that are missing.
--
-- `out_of_turn` is for callers that are further down the list: they have locked the names already, except for those that
-- came in between. They wait for no name, and try again if another transaction has one.
create or replace function belfry.lock_names(given text[], out_of_turn boolean default false) returns void
language plpgsql as $$
declare
  wanted text[] := array(select distinct g.name from unnest(given) g(name) where g.name is not null);
  locked integer;
begin
  if out_of_turn then
    perform 1 from belfry.lock_names n where n.name = any (wanted) for update skip locked;
  else
    if (select count(*) from belfry.lock_names n where n.name = any (wanted)) < cardinality(wanted) then
      perform belfry.make_names(wanted);
    end if;
    perform 1 from belfry.lock_names n where n.name = any (wanted) order by n.name for update;
  end if;
  get diagnostics locked = row_count;
  if locked < cardinality(wanted) then
    perform belfry.try_again('a name came in between, or was pruned');
  end if;
end $$;

-- Locks one name if no other transaction has it.
create or replace function belfry.try_name(wanted text) returns boolean language plpgsql as $$
begin
  perform 1 from belfry.lock_names n where n.name = wanted for update skip locked;
  if found then
    return true;
  end if;
  if exists (select 1 from belfry.lock_names n where n.name = wanted) then
    return false;
  end if;
  return belfry.try_make_name(wanted);
end $$;

-- Makes a name that was pruned between the making of a run and its start, if no other transaction is making it: that one
-- would be waited for, and may wait for a run that the caller has locked.
create or replace function belfry.try_make_name(wanted text) returns boolean language plpgsql set lock_timeout to 1 as $$
begin
  insert into belfry.lock_names (name) values (wanted) on conflict do nothing;
  return found;
exception when lock_not_available then
  return false;
end $$;
