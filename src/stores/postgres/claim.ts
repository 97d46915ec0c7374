/**
 * Starting runs. What is ready stands in one index by target, priority and instant. The few priorities of each target
 * are found by stepping from one to the next lower, so that runs which are not due yet are never passed over.
 *
 * - Two that claim at once: rows that one of them looks at are skipped by the other, so they take different runs.
 * - A claim whose reply was lost and that is sent again: it is answered with what it gave. If the first is still at work,
 *   the second waits for its end.
 * - An instance that is declared dead meanwhile: whoever does that, and a claim of that instance, go one after the other.
 *   Several claims of an instance, and its beat, go side by side. Its row is taken before any run: with runs in hand, a
 *   claim waits for nobody.
 * - Thousands of runs behind one busy key: a claim moves a bounded number of them to where no claim looks, and asks to
 *   be called again.
 */
import type { ClaimRequest, ClaimResult } from '../../core/store.js'
import { claimedLine, claimedRun } from './claimed-run.js'
import type { Database } from './connection/database.js'
import { operation } from './connection/sql-function.js'
import { START_KEYED } from './start-run.js'

/** How many runs that cannot start one claim may put aside. */
const MAX_ASIDE = 2_000
/** When to come back for a run whose key somebody else is busy with. */
const LATER_MS = 20

const first = (condition: string) => `cross join lateral (select r.priority, r.ready_at from belfry.runs r
      where r.state = 1 and not r.running and ${condition} order by r.priority desc, r.ready_at limit 1) f`

/** The priorities at which each target has ready runs, by stepping from one to the next lower, and the first instant of each. */
const FIND_LEVELS = `
  with recursive levels (target, at, priority, ready_at) as (
    select a.target, a.at, f.* from unnest(v_targets) with ordinality as a(target, at) ${first('r.target = a.target')}
    union all
    select l.target, l.at, f.* from levels l ${first('r.target = l.target and r.priority < l.priority')}
  )
  select array_agg(target), array_agg(priority), array_agg(at::integer), array_agg(ready_at),
      coalesce(bool_or(ready_at <= v_now), false), count(*) = count(distinct at)
    into v_level_targets, v_level_priorities, v_level_places, v_level_firsts, v_due, v_single from levels`

const LEVELS = `unnest(v_level_targets, v_level_priorities, v_level_places, v_level_firsts)
      as l(target, priority, at, first)`

/**
 * Due runs in the order of claiming, as many of each target as there is room for. From the first on that was found: before
 * it, the index is full of those that are under way, or have ended since the table was last cleaned.
 */
const DUE = `
      select l.at, n.* from ${LEVELS} cross join lateral (
        select r.ctid as row, r.id, r.priority, r.ready_at, r.start_by, r.attempt, r.key, r.key_limit, r.key_waits,
          r.schedule from belfry.runs r where r.state = 1 and not r.running and r.target = l.target
          and r.priority = l.priority and r.ready_at >= l.first and r.ready_at <= v_now order by r.ready_at, r.id
          limit least(v_left[l.at], v_limit - v_place) + cardinality(v_skip) for update skip locked
      ) n where v_left[l.at] > 0`
const IN_ORDER = 'priority desc, ready_at, id'

/** Where the first of what is due are, and whether there is anything special about them. */
const gather = (due: string) => `select array_agg(row), array_agg(id),
        coalesce(bool_or(key is not null or (attempt = 0 and start_by < v_now)), false)
      into v_plain, v_found, v_special from (${due}) due`

const NEXT_READY = `(select min((select r.ready_at from belfry.runs r where r.state = 1 and not r.running
    and r.target = l.target and r.priority = l.priority and r.ready_at > v_now order by r.ready_at limit 1)) from ${LEVELS})`

/**
 * What most claims meet: nothing but runs without keys that are on time. They are started at once. Their rows are locked,
 * so each is still where it was found.
 */
const startPlain = (rows: string) => `
    return query update belfry.runs u set running = true, attempt = u.attempt + 1,
      takeovers = u.takeovers + u.rescued::integer, rescued = false,
      token = greatest(coalesce(u.token, 0) + 1, v_us, v_floor), started_at = v_now, instance = v_instance,
      claim = v_claim from ${rows} as g(row, place) where u.ctid = g.row
      returning ${claimedLine('g.place')}`

/** What a claim gave whose reply was lost, as far as it is still this instance's. */
const OF_THIS_CLAIM = `belfry.claims c cross join lateral unnest(c.runs) as g(id) cross join lateral (
      select * from belfry.runs where id = g.id and running and instance = c.instance and claim = c.claim limit 1) u
      where c.instance = v_instance and c.claim = v_claim`

const CLAIM_FUNCTION = operation(
  'claim_runs(v_instance text, v_claim bigint, v_limit integer, v_targets text[], v_left integer[], v_floor bigint)',
  'setof text',
  `
declare
  v_us bigint := belfry.now_us();
  v_now bigint := v_us / 1000;
  v_settled bigint;
  v_place bigint := 0;
  v_aside integer := 0;
  v_later boolean := false;
  v_again boolean := true;
  v_special boolean;
  v_level_targets text[];
  v_level_priorities integer[];
  v_level_places integer[];
  v_level_firsts bigint[];
  v_due boolean;
  v_single boolean;
  v_plain tid[];
  v_found bigint[];
  v_places bigint[];
  v_started bigint[] := '{}';
  v_waits bigint[];
  v_skip bigint[] := '{}';
  v_busy text[] := '{}';
  v_names text[] := '{}';
  v_lanes text[] := '{}';
  v_wakes integer := 0;
  v_step record;
  r record;
begin
  perform belfry.durable();
  ${FIND_LEVELS};
  perform pg_advisory_xact_lock(hashtextextended(v_instance || ' ' || v_claim, 7237133));
  if v_due then
    select last_claim into v_settled from belfry.instances
      where id = v_instance and not dead and expires_at > v_now for key share;
  else
    select last_claim into v_settled from belfry.instances where id = v_instance and not dead and expires_at > v_now;
  end if;
  -- Both locks may have been waited for.
  v_us := belfry.now_us();
  v_now := v_us / 1000;
  if v_settled is null then
    v_again := false;
  elsif v_claim <= v_settled or exists (
    select 1 from belfry.claims where instance = v_instance and claim = v_claim) then
    return query select ${claimedLine('u.id')} from ${OF_THIS_CLAIM};
    v_again := false;
  elsif v_limit <= 0 or v_level_targets is null
    or exists (select 1 from belfry.settings where name = 'frozen') then
    v_again := false;
  end if;

  if v_again then
    -- Where each target has one priority, as most have, there is nothing to count.
    if v_single then
      ${gather(`${DUE} order by ${IN_ORDER} limit v_limit`)};
    else
      ${gather(`select * from (
        select *, row_number() over (partition by at order by ${IN_ORDER}) as nth from (${DUE}) due) due
        where nth <= v_left[at] order by ${IN_ORDER} limit v_limit`)};
    end if;
    if v_plain is null then
      v_again := false;
    elsif not v_special then
      v_again := false;
      v_started := v_found;
      ${startPlain('unnest(v_plain) with ordinality')};
    end if;
  end if;

  -- Round by round: what could not start makes room for others.
  while v_again and v_place < v_limit and v_aside < ${MAX_ASIDE} loop
    v_again := false;
    v_plain := '{}';
    v_places := '{}';
    v_waits := '{}';
    for r in select * from (${DUE}) due order by ${IN_ORDER} loop
      exit when v_place >= v_limit;
      continue when r.id = any (v_skip) or v_left[r.at] <= 0;
      if r.attempt = 0 and r.start_by < v_now and not (r.key is null or belfry.try_name(r.key)) then
        v_later := true;
        v_skip := v_skip || r.id;
      elsif r.attempt = 0 and r.start_by < v_now
        and not (select belfry.try_dedupe(u) from belfry.runs u where u.id = r.id) then
        v_later := true;
        v_skip := v_skip || r.id;
      elsif r.attempt = 0 and r.start_by < v_now then
        perform belfry.end_run(u, 6, v_now, 'deadline', null, null) from belfry.runs u where u.id = r.id;
        v_names := v_names || r.key;
        v_lanes := v_lanes || r.schedule;
        v_wakes := v_wakes | 16;
        v_aside := v_aside + 1;
        v_again := true;
      elsif r.key is null then
        v_place := v_place + 1;
        v_left[r.at] := v_left[r.at] - 1;
        v_plain := v_plain || r.row;
        v_places := v_places || v_place;
        v_started := v_started || r.id;
      elsif r.key_limit = 1 and r.key = any (v_busy) and (r.attempt > 0 or r.key_waits) then
        v_waits := v_waits || r.id;
        v_aside := v_aside + 1;
        v_again := true;
      else
        select s.* into v_step from belfry.runs u, belfry.start_keyed(u, v_instance, v_claim, v_floor, v_us) s
          where u.id = r.id;
        v_lanes := v_lanes || v_step.lanes;
        v_wakes := v_wakes | v_step.wakes;
        if v_step.outcome = 'started' then
          v_place := v_place + 1;
          v_left[r.at] := v_left[r.at] - 1;
          v_started := v_started || r.id;
          return query select ${claimedLine('v_place')} from belfry.runs u where u.id = r.id;
        elsif v_step.outcome = 'later' then
          v_later := true;
          v_skip := v_skip || r.id;
        else
          v_aside := v_aside + 1;
          v_again := true;
          if v_step.outcome = 'busy' and r.key_limit = 1 then v_busy := v_busy || r.key; end if;
          if v_step.outcome = 'skipped' then v_names := v_names || r.key; end if;
        end if;
        -- What became ready on the way may be next: the order is looked up again.
        if v_step.readied then
          v_names := v_names || r.key;
          v_again := true;
          ${FIND_LEVELS};
          exit;
        end if;
      end if;
    end loop;
    if cardinality(v_plain) > 0 then ${startPlain('unnest(v_plain, v_places)')}; end if;
    if cardinality(v_waits) > 0 then
      update belfry.runs set state = 0, waits_for = 3, engaged = true where id = any (v_waits);
    end if;
  end loop;

  if cardinality(v_started) > 0 then
    insert into belfry.claims (instance, claim, runs) values (v_instance, v_claim, v_started);
  end if;
  if cardinality(v_names) > 0 or cardinality(v_lanes) > 0 then
    perform belfry.lock_names(v_names);
    v_wakes := v_wakes | belfry.hand_on(v_names, v_lanes, v_us, 'wait');
    ${FIND_LEVELS};
  end if;
  return next json_build_array(v_now, case when v_aside >= ${MAX_ASIDE} then v_now
    else least(${NEXT_READY}, case when v_later then v_now + ${LATER_MS} end) end, v_wakes);
end`,
)

export const CLAIM_FUNCTIONS = [START_KEYED, CLAIM_FUNCTION].join('\n')

const CLAIM = 'select * from belfry.claim_runs($1, $2, $3, $4, $5, $6)'

export async function claimRuns(db: Database, request: ClaimRequest): Promise<ClaimResult> {
  const { instance, claim, limit, jobs, sinks, floor } = request
  const targets = [...jobs.map(({ name }) => `job:${name}`), ...sinks.map(({ name }) => `sink:${name}`)]
  const caps = [...jobs, ...sinks].map((capacity) => Math.min(capacity.limit, limit))
  const rows = await db.write(CLAIM, [instance, claim, limit, targets, caps, floor], { patience: 'prompt' })
  const lines = rows.map(([line]) => line ?? '')
  const [now, nextReadyAt, wakes] = JSON.parse(lines.pop() ?? '[]') as [number, number | null, number]
  db.announce(wakes)
  return {
    now,
    runs: inOrder(lines).map((line) => claimedRun(line, instance)),
    ...(nextReadyAt === null ? {} : { nextReadyAt }),
  }
}

/** By the places that lines begin with: most claims are in order as they come. */
function inOrder(lines: string[]): string[] {
  const places = lines.map((line) => Number.parseInt(line, 10))
  const isInOrder = places.every((place, at) => at === 0 || place > (places[at - 1] ?? 0))
  return isInOrder ? lines : lines.sort((one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10))
}
