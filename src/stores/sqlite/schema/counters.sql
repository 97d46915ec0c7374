-- statement: lastVersion
select value from belfry_counters where name = 'schedule version';

-- statement: takeVersion
update belfry_counters set value = :version where name = 'schedule version';
