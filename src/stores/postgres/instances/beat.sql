-- Extends an instance's lease, and compares the runs that it lists with those that are stored. Refused (`alive` is
-- false) once another instance has declared this one dead.
--
-- A run that is stored as running on the instance, belongs to a settled claim and is not listed never reached the
-- instance: the reply to the claim was lost. Such runs become ready again: see runs/unheard-claims.sql.
--
-- Locks: the instance, then as `take_over_attempts`, then its declarations.
create or replace function belfry.beat(
  instance_id text, lease_ms bigint, listed belfry.attempt[], settled_claim bigint,
  out now_ms bigint, out last_beat_at bigint, out alive boolean, out own bigint[], out cancelled bigint[], out hints belfry.hint[]
) language plpgsql as $$
declare
  now_us bigint;
  unheard belfry.attempt[];
  app_name text;
  declarations_hash text;
begin
  perform belfry.durable();
  hints := '{}';
  unheard := array(select a from belfry.unheard_attempts(instance_id, listed, settled_claim) a);
  select i.app, i.declarations, i.beat_at into app_name, declarations_hash, last_beat_at from belfry.instances i
  where i.id = instance_id and not i.dead for no key update;
  alive := found;
  now_us := belfry.now_us();
  now_ms := now_us / 1000;
  if not alive then
    return;
  end if;
  -- Read only now that the instance's row is locked: a run that was taken over before is no longer the instance's own,
  -- and none can be taken over while the row is locked. Each run is looked up by its id. By its instance, Postgres
  -- would read all of the instance's runs for each listed run.
  select coalesce(array_agg(r.id), '{}'), coalesce(array_agg(r.id) filter (where r.cancel_requested), '{}')
  into own, cancelled
  from unnest(listed) l cross join lateral (
    select id, token, state, instance, cancel_requested from belfry.runs where id = l.run limit 1) r
  where r.token = l.token and r.state = 'running' and r.instance = instance_id;
  update belfry.instances i
  set beat_at = now_ms, expires_at = now_ms + lease_ms, claims_settled = greatest(i.claims_settled, settled_claim)
  where i.id = instance_id;
  -- A run that was taken over since it was selected has another token by now, and is left alone.
  select t.hints into hints from belfry.take_over_attempts(unheard, false, now_us) t;
  update belfry.declarations d set alive_at = now_ms where d.app = app_name and d.hash = declarations_hash;
end $$;
