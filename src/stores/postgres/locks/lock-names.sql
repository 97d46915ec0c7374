-- Locks rows in one order, so that no two operations wait for each other in a circle. Every operation goes down this
-- list and never back up. Within a line it locks in the order that the line names.
--
--     1. instances
--     2. schedules, by id: new ones, then existing ones. Before that, the advisory lock for changing schedules, shared
--        or exclusive
--     3. names of locks and keys, by name: new ones, then existing ones. Leases and waiters belong to their name: only
--        the transaction that has locked the name changes them
--     4. runs that are not in a queue of line 6, by id. A run with a key is locked only while the key's name is locked,
--        so runs of one key need no order among themselves
--     5. dedupe keys, by target and key
--     6. overlap queues, by number: the runs of a schedule that wait for others of it. Every operation ends by passing
--        on to these. Only the transaction that has locked a queue changes the runs in it
--     7. jobs, then declarations
--
-- So an operation first finds out what it will need, locks it line by line, and only then reads and decides. A row that
-- appeared in between would have to be locked out of order. No operation waits for such a row. If another transaction
-- has locked it, `take_runs` and `take_dedupes` make the caller repeat the whole operation, and the functions `try_…`
-- return false.
--
-- A claim goes the other way, from a run to its key. So it locks its instance before any run, and then waits for no
-- run, name or dedupe key: what another transaction has locked is left for a later claim. `make_room`, rescue, repair
-- and prune, too, lock only what is free wherever they would have to go back up.
--
-- A caller's own transaction (`enqueue` with `tx`) may lock these rows in any order. If that ends in a deadlock,
-- Postgres aborts one of the two transactions, and an aborted operation of Belfry is tried again.

-- Inserts the names that do not exist yet, in order. Every operation that creates a run with a key does this first.
create or replace function belfry.make_names(wanted text[]) returns void language plpgsql as $$
begin
  insert into belfry.lock_names (name)
  select missing.name
  from (select distinct w.name collate "C" as name from unnest(wanted) w(name) where w.name is not null) missing
  where not exists (select 1 from belfry.lock_names n where n.name = missing.name)
  order by missing.name
  on conflict do nothing;
end $$;

-- Locks names in order, and inserts those that are missing.
--
-- `out_of_turn`: the caller is further down the lock order, and has locked the names already, except for those that
-- appeared since. It waits for no name: if another transaction has locked one, the operation is tried again.
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

-- Locks a name, unless another transaction has it locked.
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

-- Inserts a name that was pruned after its run was created. Returns false if another transaction is inserting it, too:
-- that transaction may be waiting for a run that the caller has locked, so the caller must not wait for it.
create or replace function belfry.try_make_name(wanted text) returns boolean language plpgsql set lock_timeout to 1 as $$
begin
  insert into belfry.lock_names (name) values (wanted) on conflict do nothing;
  return found;
exception when lock_not_available then
  return false;
end $$;
