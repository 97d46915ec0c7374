-- statement: getSchedule
select * from belfry_schedules where id = :id;

-- statement: listSchedules
-- A window of ids. SQLite seeks by one lower bound only and filters by any other, so there is one: :from.
select * from belfry_schedules where id >= :from and id <> :after and id <= :upTo/* and conditions */
order by id limit :limit;

-- statement: windowEnd
select id from belfry_schedules where id >= :from and id <> :after and id <= :beyond order by id limit 1 offset :window;
