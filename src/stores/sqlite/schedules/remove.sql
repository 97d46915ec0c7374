-- statement: forgetSchedule
delete from belfry_schedules where id = :id;
