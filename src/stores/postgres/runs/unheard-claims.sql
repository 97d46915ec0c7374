-- Recovery of a claim whose reply was lost: its runs are running in the store, but the instance has never heard of them.
-- The recovery has two halves, which both use the claim's number:
--
-- 1. A claim without a reply is sent again with the same number (`claim_runs` in claim.sql). The repetition starts
--    nothing more, and returns the runs of that number that are still running.
-- 2. The beat gives back runs that never arrived (`beat` in instances/beat.sql). A claim is settled once it has been
--    answered or has failed. The beat says up to which number all claims are settled (`settled_claim`), and which
--    attempts the instance runs (`listed`). Runs of settled claims that are not listed become ready again.
--
--    claim 7 ──▶ starts runs 1, 2 ──✗ reply lost
--    claim 7 ──▶ starts nothing   ──▶ runs 1, 2                               half 1
--    beat, settled_claim 7, listed []  ──▶ gives back runs 1, 2               half 2
--
-- A claim whose number is settled starts nothing. So a copy of a claim that arrives late cannot start runs that the
-- instance never hears of.
-- Locks: none here. Each run is locked, and its token compared, by `take_over_attempts`.

-- The attempts that an instance runs by settled claims, and does not list.
create or replace function belfry.unheard_attempts(instance_id text, listed belfry.attempt[], settled_claim bigint)
returns setof belfry.attempt language plpgsql as $$
begin
  -- `not in` a subquery is a hash lookup. Searching an array for each run would take seconds for an instance that runs
  -- 20,000 at a time.
  return query
  select a.run, a.token from belfry.attempts_of(instance_id, settled_claim) a
  where (a.run, a.token) not in (select l.run, l.token from unnest(listed) l);
end $$;

-- The attempts that run on an instance: by all its claims, or by those up to a number.
create or replace function belfry.attempts_of(instance_id text, up_to_claim bigint default 9223372036854775807)
returns setof belfry.attempt language plpgsql as $$
begin
  return query
  select r.id, r.token from belfry.runs r
  where r.instance = instance_id and r.claim <= up_to_claim and r.state = 'running';
end $$;
