-- statement: extend
update belfry_leases set expires_at = :expiresAt, released = :released where name = :name and holder = :holder;
