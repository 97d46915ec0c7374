-- statement: existing
-- The first of these names that the file has: tables, indexes or views.
select min(name) as name from sqlite_master where name in (select value from json_each(:names));

-- statement: metaColumns
select group_concat(name) as columns from (select name from pragma_table_info('belfry_meta') order by cid);

-- statement: makeMeta
create table if not exists belfry_meta (name text primary key, value integer not null) without rowid;

-- statement: versionOf
select value from belfry_meta where name = 'schema';

-- statement: setVersion
insert or replace into belfry_meta (name, value) values ('schema', :version);
