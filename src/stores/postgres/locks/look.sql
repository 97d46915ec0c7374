-- What waiters of locks find without touching them: how many hold the name, when the first of them runs out as far as
-- they have a time of their own, and the waiter's own lease. In the advisory mode a lease counts only if it was given to
-- the session that proves this process alive now. Locks: none.
create or replace function belfry.look_at_locks(waiters belfry.lock_holder[], proof_number integer)
returns table (now_ms bigint, holders integer, until bigint, token bigint, acquired_at bigint, expires_at bigint,
  instance text)
language plpgsql as $$
declare
  read_at bigint := belfry.now_us() / 1000;
begin
  return query
  select read_at, held.live::integer, held.until, own.token, own.acquired_at, own.expires_at, own.instance
  from unnest(waiters) with ordinality waiter
  cross join lateral (
    select count(*) as live, min(case when l.run is null then l.expires_at end) as until
    from belfry.lease_times l where l.name = waiter.name and l.counts_until > read_at) held
  left join belfry.leases own on own.name = waiter.name and own.holder = waiter.holder and own.run is null
    and not own.released and own.proof is not distinct from proof_number
  order by waiter.ordinality;
end $$;
