-- Ends an instance: the runs that it still has are taken over at once.
-- Locks: the instance, then as `take_over_attempts`.
create or replace function belfry.leave(instance_id text) returns void language plpgsql as $$
begin
  perform belfry.durable();
  perform 1 from belfry.instances i where i.id = instance_id for update;
  if found then
    perform belfry.take_over_attempts(
      array(select a from belfry.attempts_of(instance_id) a), false, belfry.now_us());
    delete from belfry.instances i where i.id = instance_id;
  end if;
end $$;
