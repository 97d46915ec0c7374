/** The last statement of a handler's transaction: marks the run with the token that has committed, or fails. */
import { operation } from '../connection/sql-function.js'

export const STALE = 'BF001'
export const ENDED_ITSELF = 'BF002'

/**
 * Whoever takes the run away takes its row first, and its lease with it: one of both comes first. The row is taken before
 * the lease is looked at, so that it is seen as it then is.
 */
export const COMMIT_RUN_FUNCTION = operation(
  'commit_run(v_run bigint, v_token bigint, v_xid text, v_result text)',
  'void',
  `
declare
  r belfry.runs;
begin
  if pg_current_xact_id_if_assigned()::text is distinct from v_xid then
    raise exception 'the callback of run % has ended its transaction itself', v_run using errcode = '${ENDED_ITSELF}';
  end if;
  perform belfry.durable();
  select * into r from belfry.runs where id = v_run and token = v_token and running for no key update;
  if not found or (r.key is not null
    and not exists (select 1 from belfry.leases where run = v_run and token = v_token)) then
    raise exception 'run % is no longer this attempt''s', v_run using errcode = '${STALE}';
  end if;
  update belfry.runs set settled_token = v_token, result = v_result where id = v_run;
end`,
)
