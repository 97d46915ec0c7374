-- statement: holdsKey
select 1 as held from belfry_leases where run = :run and token = :token;
