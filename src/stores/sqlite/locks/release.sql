-- statement: dropHolder
delete from belfry_leases where name = :name and holder = :holder;

-- statement: dropRunKey
delete from belfry_leases where run = :run;

-- statement: dropWaiter
delete from belfry_waiters where name = :name and holder = :holder;
