-- statement: listInstances
select info, joined_at, beat_at, expires_at from belfry_instances where dead = 0 order by place;

-- statement: listJobs
select info from belfry_jobs order by place;
