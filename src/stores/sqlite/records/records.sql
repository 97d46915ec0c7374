-- statement: putRecord
insert or replace into belfry_records (kind, id, body, written_at, expires_at)
values (:kind, :id, :body, :now, :expiresAt);

-- statement: getRecord
select * from belfry_records where kind = :kind and id = :id and (expires_at is null or expires_at > :now);

-- statement: listRecords
select * from belfry_records where kind = :kind and id > :after and (expires_at is null or expires_at > :now)
order by id limit :limit;

-- statement: listRecordsBackwards
select * from belfry_records where kind = :kind and id < :after and (expires_at is null or expires_at > :now)
order by id desc limit :limit;

-- statement: removeRecord
delete from belfry_records where kind = :kind and id = :id and (expires_at is null or expires_at > :now);
