-- statement: countSchedules
select count(*) as count from (select 1 from belfry_schedules where id >= :prefix and id < :beyond limit :limit);
