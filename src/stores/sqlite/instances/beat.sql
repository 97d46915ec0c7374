-- statement: livingInstance
select app, declarations from belfry_instances where id = :instance and dead = 0;

-- statement: extendInstance
update belfry_instances set beat_at = :now, expires_at = :expiresAt where id = :instance;

-- statement: settleClaims
update belfry_instances set claims_settled = max(claims_settled, :claim) where id = :instance;

-- statement: attemptsOf
select id, mark, token, claim, cancel_requested from belfry_runs where state = 'running' and instance = :instance;

-- statement: runningOf
select * from belfry_runs where state = 'running' and instance = :instance order by id limit :limit;
