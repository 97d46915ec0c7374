/** A schema whose functions, and if asked for its operators and types, have the names of built-in ones, and fail. */
import type pg from 'pg'

/** Types without values, and those that only functions in C can take. */
const CALLABLE = `not exists (select from unnest(p.proargtypes) t(id) join pg_type on pg_type.oid = t.id
  where pg_type.typtype = 'p' or pg_type.typname in ('int2vector', 'oidvector'))`

const FUNCTIONS = `for f in select distinct p.proname as name, (select string_agg(format_type(t.id, null), ', ' order by t.n)
      from unnest(p.proargtypes) with ordinality t(id, n)) as arguments
    from pg_proc p where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f' and p.provariadic = 0
    and ${CALLABLE}
  loop
    execute format('create function %1$I.%2$I(%3$s) returns text language plpgsql as %4$L', 'SCHEMA', f.name,
      f.arguments, format('begin raise exception using message = %L; end', 'the function ' || f.name || ' of the app was called'));
  end loop;`

const POLYMORPHIC = `create function SCHEMA.unnest(anyarray) returns setof anyelement language plpgsql
    as 'begin raise exception ''unnest of the app was called''; end';
  create function SCHEMA.array_to_json(anyarray) returns json language plpgsql
    as 'begin raise exception ''array_to_json of the app was called''; end';
  create function SCHEMA.json_populate_recordset(anyelement, json) returns setof anyelement language plpgsql
    as 'begin raise exception ''json_populate_recordset of the app was called''; end';
  create view SCHEMA.pg_stat_activity as select 1 as nothing;
  create view SCHEMA.pg_settings as select 1 as nothing;
  create view SCHEMA.pg_class as select 1 as nothing;`

const OPERATORS = `for f in select o.oid, o.oprname as name, format_type(o.oprleft, null) as l, format_type(o.oprright, null) as r
    from pg_operator o where o.oprkind = 'b' and o.oprnamespace = 'pg_catalog'::regnamespace
    and not exists (select from pg_type t where t.oid in (o.oprleft, o.oprright) and t.typtype = 'p')
  loop
    execute format('create function SCHEMA.operator_%s(%s, %s) returns boolean language plpgsql as %L', f.oid, f.l, f.r,
      format('begin raise exception using message = %L; end', 'the operator ' || f.name || ' of the app was called'));
    execute format('create operator SCHEMA.%s (leftarg = %s, rightarg = %s, function = SCHEMA.operator_%s)', f.name,
      f.l, f.r, f.oid);
  end loop;`

export async function shadowBuiltIns(
  client: pg.Client | pg.Pool,
  schema: string,
  { operators = false } = {},
): Promise<void> {
  const loops = [FUNCTIONS, ...(operators ? [OPERATORS] : [])].join('\n')
  await client.query(
    `create schema SCHEMA; ${POLYMORPHIC} do $$ declare f record; begin ${loops} end $$`.replaceAll('SCHEMA', schema),
  )
}
