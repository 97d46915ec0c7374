-- statement: lastBeat
select beat_at from belfry_instances where id = :instance;

-- statement: extendInstance
update belfry_instances
set beat_at = :now, expires_at = :expiresAt, claims_settled = max(claims_settled, :claimsSettled)
where id = :instance and dead = 0
returning app, declarations;

-- statement: attemptsOf
select id, mark, token, claim, cancel_requested from belfry_runs where state = 'running' and instance = :instance;

-- statement: runningOf
select * from belfry_runs where state = 'running' and instance = :instance order by id limit :limit;
