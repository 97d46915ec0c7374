-- statement: unclaimedTicks
-- Ticks of a schedule that were recorded and never claimed.
select id, mark, tick from belfry_runs
where schedule = :schedule and finished_at is null and waits_for is not 'overlap' and origin = 'tick' and attempt = 0
union all
select id, mark, tick from belfry_runs
where schedule = :schedule and waits_for = 'overlap' and origin = 'tick' and attempt = 0
order by id;
