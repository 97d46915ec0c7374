-- statement: join
insert into belfry_instances (id, info, app, declarations, joined_at, beat_at, expires_at, dead, claims_settled)
values (:instance, :info, :app, :declarations, :now, :now, :expiresAt, 0, -1);

-- statement: noteJob
insert into belfry_jobs (name, info) values (:name, :info)
on conflict (name) do update set info = excluded.info;
