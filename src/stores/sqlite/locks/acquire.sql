-- statement: holdersOf
select * from belfry_holders where name = :name order by place;

-- statement: holderOf
select * from belfry_holders where name = :name and holder = :holder;

-- statement: lastToken
select last_token from belfry_names where name = :name;

-- statement: noteToken
-- Records the last token of a name, and that the name is in use.
insert into belfry_names (name, last_token, freed_at) values (:name, :token, null)
on conflict (name) do update set last_token = excluded.last_token, freed_at = null;

-- statement: addHolder
insert into belfry_leases (name, holder, token, run, instance, acquired_at, expires_at)
values (:name, :holder, :token, :run, :instance, :now, :expiresAt);

-- statement: placeOf
select until from belfry_waiters where name = :name and holder = :holder and ttl_ms = :ttlMs and permits = :permits;

-- statement: keepPlace
-- Asking again keeps the place in the queue.
insert into belfry_waiters (name, holder, ttl_ms, permits, instance, floor, until)
values (:name, :holder, :ttlMs, :permits, :instance, :floor, :until)
on conflict (name, holder) do update set ttl_ms = excluded.ttl_ms, permits = excluded.permits,
  instance = excluded.instance, floor = excluded.floor, until = excluded.until;
