-- statement: dueQueues
select target, first_at, (
  select count(*) from (
    select 1 from belfry_runs r
    where r.state = 'ready' and r.target = q.target and r.priority = q.priority and r.ready_at <= :now limit :counted)
) as due
from belfry_queues q where first_at <= :now limit :queues;
