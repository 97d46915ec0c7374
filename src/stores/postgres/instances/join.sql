-- Adds an instance, or extends its lease when it joins again after a pause. If the instance was declared dead, its runs
-- are first taken over.
-- Locks: the instance, then as `take_over_attempts`, then jobs, then declarations.
create or replace function belfry.join_instance(
  instance_id text, instance_info text, app_name text, declarations_hash text, lease_ms bigint,
  job_declarations belfry.job_declaration[], proof_number integer,
  out now_ms bigint
) language plpgsql as $$
declare
  now_us bigint;
  is_dead boolean;
begin
  perform belfry.durable();
  select i.dead into is_dead from belfry.instances i where i.id = instance_id for update;
  now_us := belfry.now_us();
  now_ms := now_us / 1000;
  if is_dead then
    perform belfry.take_over_attempts(array(select a from belfry.attempts_of(instance_id) a), true, now_us);
    delete from belfry.instances i where i.id = instance_id;
  end if;
  insert into belfry.instances (id, info, app, declarations, joined_at, beat_at, expires_at, proof)
  values (instance_id, instance_info, app_name, declarations_hash, now_ms, now_ms, now_ms + lease_ms, proof_number)
  on conflict on constraint instances_pkey do update
  set beat_at = excluded.beat_at, expires_at = excluded.expires_at, proof = excluded.proof;
  insert into belfry.jobs as j (name, info) select d.name, d.info from unnest(job_declarations) d order by d.name
  on conflict on constraint jobs_pkey do update set info = excluded.info where j.info <> excluded.info;
  update belfry.declarations d set alive_at = now_ms where d.app = app_name and d.hash = declarations_hash;
end $$;
