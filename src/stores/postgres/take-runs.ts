/**
 * Taking runs from instances that no longer have them: whoever died, left, or never heard the answer to its claim. First
 * they are picked, then names and rows are waited for. Meanwhile one may have ended and been begun again, by another: its
 * token tells.
 */
import { step } from './connection/sql-function.js'

/** What an instance runs, of all its claims or of those up to a number. */
const RUNNING_OF = step(
  'running_of(v_instance text, v_through bigint default 9223372036854775807)',
  'table (id bigint, token bigint)',
  `
begin
  return query select r.id, r.token from belfry.claims c cross join lateral unnest(c.runs) as g(id) cross join lateral (
    select id, token from belfry.runs where id = g.id and running and instance = c.instance and claim = c.claim limit 1) r
    where c.instance = v_instance and c.claim <= v_through;
end`,
)

/** Into variables: what is to be taken, and the tokens that it has then. */
export function pickRuns(from: string): string {
  return `select array_agg(id), array_agg(token) into v_runs, v_tokens from (${from}) picked`
}
export const PICKED = `
  v_runs bigint[];
  v_tokens bigint[];`

/** Takes runs that were picked. Answers how many became ready or ended, and how many were given up. */
const TAKE_ALL = step(
  `take_all(v_runs bigint[], v_tokens bigint[], v_died boolean, v_us bigint,
    out rescued integer, out lost integer, out wakes integer)`,
  'record',
  `
declare
  v_names text[] := array(select key from belfry.runs where id = any (v_runs) and key is not null);
  v_lanes text[] := '{}';
  v_outcome text;
  r belfry.runs;
begin
  perform belfry.lock_names(v_names);
  perform 1 from belfry.runs where id = any (v_runs) and running order by id for update;
  perform belfry.lock_dedupes(v_runs);
  rescued := 0;
  lost := 0;
  for r in select u.* from unnest(v_runs, v_tokens) as g(id, token) cross join lateral (
    select * from belfry.runs where id = g.id limit 1) u where u.running and u.token = g.token order by u.id
  loop
    v_outcome := belfry.take_over(r, v_us / 1000, v_died);
    v_lanes := v_lanes || r.schedule;
    if v_outcome = 'lost' then lost := lost + 1; else rescued := rescued + 1; end if;
  end loop;
  wakes := case when rescued + lost > 0 then 2 | 4 | 16 else 0 end | belfry.hand_on(v_names, v_lanes, v_us, 'wait');
end`,
)

export const TAKE_RUNS_FUNCTIONS = [RUNNING_OF, TAKE_ALL].join('\n')
