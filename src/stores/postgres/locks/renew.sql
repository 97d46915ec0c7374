-- Extends leases, also expired ones that no other holder has taken. Returns the leases that still belong to their
-- holders. The lease of a run's key expires with the instance's lease, and is returned unchanged.
-- Locks: the names, in order. Without these locks, another caller could take an expired lease while it is being
-- extended.
create or replace function belfry.renew_locks(renewals belfry.renewal[], proof_number integer)
returns table (place bigint, name text, holder text, token bigint, acquired_at bigint, expires_at bigint, instance text,
  run text, released boolean)
language plpgsql as $$
declare
  names text[] := array(select g.name from unnest(renewals) g);
  now_ms bigint;
begin
  perform belfry.durable();
  perform 1 from belfry.lock_names n where n.name = any (names) order by n.name for update;
  now_ms := belfry.now_us() / 1000;
  update belfry.leases l set expires_at = now_ms + given.ttl_ms, proof = proof_number
  from unnest(renewals) given
  where l.name = any (names) and l.name = given.name and l.holder = given.holder and l.token = given.token
    and not l.released and l.run is null;
  return query
  select given.ordinality, l.name, l.holder, l.token, l.acquired_at, l.expires_at, l.instance, l.run, l.released
  from unnest(renewals) with ordinality given
  cross join lateral (select * from belfry.lease_times t
    where t.name = given.name and t.holder = given.holder and t.token = given.token and not t.released limit 1) l;
end $$;
