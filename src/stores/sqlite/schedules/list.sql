-- statement: getSchedule
select * from belfry_schedules where id = :id;

-- statement: listSchedules
-- A window of ids.
select * from belfry_schedules where id > :after and id <= :upTo and id >= :prefix/* and conditions */
order by id limit :limit;

-- statement: windowEnd
select id from belfry_schedules where id > :after and id >= :prefix and id <= :beyond order by id limit 1 offset :window;
