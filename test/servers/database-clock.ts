/**
 * A manual clock for a schema. All operations read the time from its function `now_us`, so only that is replaced. The
 * time is kept in a sequence: all transactions see a new value at once, whatever their snapshot, and it leaves no dead
 * rows.
 */
export function manualClockSql(schema: string): string {
  return `create sequence if not exists ${schema}.manual_clock;
    create or replace function ${schema}.now_us() returns bigint language sql volatile
      as 'select last_value from ${schema}.manual_clock';`
}

/** Sets the clock, in milliseconds since 1970. */
export function setClockSql(schema: string, now: number): string {
  return `select setval('${schema}.manual_clock', ${Math.floor(now * 1_000)})`
}

/** Commits do not wait for the disk, because the schemas do not outlive their tests. Chaos tests are durable. */
export function notDurableSql(schema: string): string {
  return `alter function ${schema}.durable(boolean) rename to really_durable;
    create function ${schema}.durable(v_inside boolean default false) returns void language plpgsql as $$
    begin
      perform ${schema}.really_durable(v_inside);
      perform set_config('synchronous_commit', 'off', true);
    end $$`
}

export function emptySchemaSql(schema: string): string {
  return `do $$ declare t text; begin
    for t in select tablename from pg_tables where schemaname = '${schema}' and tablename <> 'meta' loop
      execute format('delete from %I.%I', '${schema}', t);
    end loop;
  end $$`
}
