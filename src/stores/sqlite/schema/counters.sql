-- statement: lastOf
select value from belfry_counters where name = :counter;

-- statement: raiseTo
update belfry_counters set value = :value where name = :counter;

-- statement: advanceBy
-- Returns the last of the numbers that were taken.
update belfry_counters set value = value + :count where name = :counter returning value;
