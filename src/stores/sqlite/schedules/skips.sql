-- statement: addSkip
insert into belfry_skips (schedule, from_at, to_at, count, reason, recorded_at)
values (:schedule, :from, :to, :count, :reason, :now);

-- statement: listSkips
select from_at, to_at, count, reason from belfry_skips
where schedule = :schedule and from_at <= :to and to_at >= :from order by from_at, place limit :limit;
