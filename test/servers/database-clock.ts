/**
 * A database clock that is turned by hand. Everything of the store reads the time from the schema's `now_us`, so it is
 * enough to replace that by one that reads a table.
 */
export function turnedByHand(schema: string): string {
  return `create table if not exists ${schema}.manual_clock (us bigint not null);
    create or replace function ${schema}.now_us() returns bigint language sql volatile
      as 'select us from ${schema}.manual_clock';`
}

/** Sets the clock, in milliseconds since 1970. */
export function setClock(schema: string, now: number): string {
  return `with before as (delete from ${schema}.manual_clock)
    insert into ${schema}.manual_clock values (${Math.floor(now * 1_000)})`
}

/** Empties all tables of a schema: what is left is as good as new. */
export function emptySchema(schema: string): string {
  return `do $$ declare t text; begin
    for t in select tablename from pg_tables where schemaname = '${schema}' and tablename <> 'meta' loop
      execute format('delete from %I.%I', '${schema}', t);
    end loop;
  end $$`
}
