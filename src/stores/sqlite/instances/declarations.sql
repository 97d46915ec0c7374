-- statement: listDeclared
select hash, release, schedules, first_seen_at, alive_at from belfry_declarations where app = :app order by place;

-- statement: declareSet
insert into belfry_declarations (app, hash, release, schedules, first_seen_at, alive_at)
values (:app, :hash, :release, :schedules, :now, :now)
on conflict (app, hash) do nothing;

-- statement: noteAlive
update belfry_declarations set alive_at = :now where app = :app and hash = :hash;
