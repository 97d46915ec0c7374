/**
 * A database clock that is turned by hand. Everything of the store reads the time from the schema's `now_us`, so it is
 * enough to replace that. The time stands in a sequence: what is set there is seen by all at once, whatever their
 * snapshot, and turning it a thousand times leaves no dead rows behind.
 */
export function turnedByHand(schema: string): string {
  return `create sequence if not exists ${schema}.manual_clock;
    create or replace function ${schema}.now_us() returns bigint language sql volatile
      as 'select last_value from ${schema}.manual_clock';`
}

/** Sets the clock, in milliseconds since 1970. */
export function setClock(schema: string, now: number): string {
  return `select setval('${schema}.manual_clock', ${Math.floor(now * 1_000)})`
}

/** Lets go of the wait for the disk: nothing in these schemas outlives its test. Chaos kills servers that are durable. */
export function notDurable(schema: string): string {
  return `alter function ${schema}.durable(boolean) rename to really_durable;
    create function ${schema}.durable(v_inside boolean default false) returns void language plpgsql as $$
    begin
      perform ${schema}.really_durable(v_inside);
      perform set_config('synchronous_commit', 'off', true);
    end $$`
}

/** Empties all tables of a schema: what is left is as good as new. */
export function emptySchema(schema: string): string {
  return `do $$ declare t text; begin
    for t in select tablename from pg_tables where schemaname = '${schema}' and tablename <> 'meta' loop
      execute format('delete from %I.%I', '${schema}', t);
    end loop;
  end $$`
}
