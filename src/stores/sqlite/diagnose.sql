-- statement: versions
select sqlite_version() as sqlite, (select value from belfry_meta where name = 'schema') as schema;

-- statement: presentIndexes
select name from sqlite_master where type = 'index' and name like 'belfry\_%' escape '\';

-- statement: fileSize
select
  (select page_count from pragma_page_count) as pages,
  (select freelist_count from pragma_freelist_count) as free,
  (select page_size from pragma_page_size) as page_size;
