/** Taking a lock, or a place in its line. `leases.ts` says how locks work. */
import { type AcquireRequest, type AcquireResult, FRESH_PLACE } from '../../core/lease.js'
import { numberArray, textArray } from './connection/array-text.js'
import type { Database } from './connection/database.js'
import { operation, smallOperation } from './connection/sql-function.js'
import { FROM, HANDED_LEASE, type Handed, leaseOf, noCrowd } from './lease-row.js'
import { EXPIRY } from './names.js'
import { DURABLE } from './transactions/durable.js'

const COUNT_HOLDERS = `
  select count(*), count(*) filter (where ${EXPIRY} > v_now), bool_or(l.holder = v_holder),
    min(${EXPIRY}) filter (where ${EXPIRY} > v_now)
    into v_holders, v_live, v_own, until ${FROM} where l.name = v_name`

const MOMENT_MS = 10

/** When a place ends that was there before as `w`: one that is fresh is left alone, and keeps what it asked for. */
export const PROLONGED = `case when w.ttl_ms = excluded.ttl_ms and w.permits = excluded.permits
          and w.until - v_us / 1000 >= (excluded.until - v_us / 1000) * ${FRESH_PLACE}
          then w.until else excluded.until end`

const TAKE_PLACE = `
      insert into belfry.waiters as w (name, holder, ttl_ms, permits, instance, proof, floor, until)
        values (v_name, v_holder, v_ttl, v_permits, v_instance, v_proof, v_floor, v_now + v_wait)
        on conflict on constraint waiters_pkey do update set ttl_ms = excluded.ttl_ms, permits = excluded.permits,
          instance = excluded.instance, proof = excluded.proof, floor = excluded.floor, until = ${PROLONGED}`

/**
 * What most locks meet: a name that was there before, which nobody holds or waits for. One statement sees things as they
 * were when it began. So that it takes nothing that was given away since, the name's last token must still be the one of
 * then: every grant moves it.
 */
const TAKE_FREE = `
  with taken as (
    update belfry.names n set last_token = greatest(n.last_token + 1, v_us, v_floor) where n.name = v_name
      and n.last_token = (select s.last_token from belfry.names s where s.name = v_name)
      and not exists (select 1 from belfry.leases where name = v_name) and ${noCrowd('v_name')}
    returning n.last_token
  )
  insert into belfry.leases (name, holder, token, acquired_at, expires_at, instance, proof)
    select v_name, v_holder, last_token, v_now, v_now + v_ttl, v_instance, v_proof from taken returning token into v_token`

/**
 * The short way. It has few parameters and one result, because even those count. Answers the time and the token, or the
 * time and until when it is plainly busy for somebody who does not wait: to look is enough for him, so that a crowd that
 * polls a lock costs it nothing. Null for all that has to go the long way.
 */
const TAKE_LOCK_FUNCTION = smallOperation(
  `take_lock(v_name text, v_holder text, v_ttl bigint, v_permits integer, v_instance text, v_floor bigint, v_waits boolean,
    v_proof integer)`,
  'text',
  `
declare
  v_us bigint := belfry.now_us();
  v_now bigint := v_us / 1000;
  v_token bigint;
  until bigint;
  v_holders integer;
  v_live integer;
  v_own boolean;
begin
  ${DURABLE}
  ${TAKE_FREE};
  if found then return v_now || ' ' || v_token; end if;
  if v_waits then return null; end if;
  ${COUNT_HOLDERS};
  if v_live >= v_permits and not v_own and ${noCrowd('v_name')} then return v_now || ' busy ' || until; end if;
  return null;
end`,
)

const TAKE_LOCK = 'select belfry.take_lock($1, $2, $3, $4, $5, $6, $7, $8)'

/** Takes a lock that is free, or says until when it is not. Undefined for one that is to be acquired the long way. */
export async function takeLock(db: Database, request: AcquireRequest): Promise<AcquireResult | undefined> {
  const { name, holder, ttlMs, permits, instance = null, floor, waitMs = 0, remote = false } = request
  const values = [name, holder, Math.ceil(ttlMs), permits, instance, floor, waitMs > 0]
  const take = (proof: number | null) => db.write(TAKE_LOCK, [...values, remote ? null : proof])
  const [row] = await db.withProof(take, { again: true })
  const answer = row?.[0]
  if (typeof answer !== 'string') return undefined
  const [now, token, until] = answer.split(' ')
  if (until === undefined) return granted(request, Number(token), Number(now))
  return { acquired: false, until: Number(until), now: Number(now) }
}

const ACQUIRE_FUNCTION = smallOperation(
  `acquire(v_name text, v_holder text, v_ttl bigint, v_permits integer, v_instance text, v_floor bigint, v_wait bigint,
    v_proof integer, out now_ms bigint, out token bigint, out until bigint, out wakes integer, out lease json)`,
  'record',
  `
declare
  v_us bigint;
  v_now bigint;
  v_holders integer;
  v_live integer;
  v_own boolean;
  v_lanes text[] := '{}';
  v_granted text[];
begin
  ${DURABLE}
  perform 1 from belfry.names n where n.name = v_name for update;
  if not found then perform belfry.lock_names(array[v_name]); end if;
  v_us := belfry.now_us();
  v_now := v_us / 1000;
  now_ms := v_now;
  wakes := 0;
  ${COUNT_HOLDERS};
  if v_live >= v_permits and v_own is not true and v_wait > 0
    and not exists (select 1 from belfry.waiters w where w.name = v_name and w.permits > v_live) then
    -- Plainly busy: a place in the line. It need not survive a crash of the server, its holder asks again anyway; and
    -- others wait for the name meanwhile.
    ${TAKE_PLACE};
    perform set_config('synchronous_commit', 'off', true);
    return;
  end if;
  if v_holders < v_permits and v_own is not true and ${noCrowd('v_name')} then
    -- Plainly free.
    update belfry.names n set last_token = greatest(n.last_token + 1, v_us, v_floor) where n.name = v_name
      returning n.last_token into token;
    insert into belfry.leases (name, holder, token, acquired_at, expires_at, instance, proof)
      values (v_name, v_holder, acquire.token, v_now, v_now + v_ttl, v_instance, v_proof);
    return;
  end if;

  -- What is the holder's own already is extended before anybody else is served, even if it has expired.
  if v_own is not true or not exists (select 1 from belfry.leases l where l.name = v_name and l.holder = v_holder and not l.released) then
    select s.lanes, s.wakes into v_lanes, wakes from belfry.serve_waiters(v_name, v_us) s;
    ${COUNT_HOLDERS};
  end if;
  if v_own and exists (select 1 from belfry.leases l where l.name = v_name and l.holder = v_holder and not l.released) then
    update belfry.leases l set expires_at = v_now + v_ttl, proof = v_proof
      where l.name = v_name and l.holder = v_holder and l.run is null;
    v_granted := '{}';
  elsif v_live < v_permits then
    delete from belfry.leases l where l.name = v_name and l.holder = v_holder;
    v_granted := belfry.grant_lock(v_name, v_holder, v_ttl, v_permits, v_instance, v_proof, v_floor, v_us);
  end if;
  if v_granted is null then
    if v_wait > 0 then
      ${TAKE_PLACE};
      end if;
    wakes := wakes | belfry.hand_on(array[v_name], v_lanes, v_us, 'wait');
    -- Without anybody whose time is still to come, one just now proves that it lives: that is over in a moment.
    until := coalesce(until, v_now + ${MOMENT_MS});
    return;
  end if;
  v_lanes := v_lanes || v_granted;
  delete from belfry.waiters w where w.name = v_name and w.holder = v_holder;
  wakes := wakes | belfry.hand_on(array[v_name], v_lanes, v_us, 'wait');
  select ${HANDED_LEASE} into lease from belfry.leases l where l.name = v_name and l.holder = v_holder;
end`,
)

const ACQUIRE = 'select now_ms, token, until, wakes, lease from belfry.acquire($1, $2, $3, $4, $5, $6, $7, $8)'

export async function acquireLease(db: Database, request: AcquireRequest): Promise<AcquireResult> {
  const { name, holder, ttlMs, permits, instance = null, floor, waitMs = 0, remote = false } = request
  const values = [name, holder, Math.ceil(ttlMs), permits, instance, floor, Math.ceil(waitMs)]
  const [row = []] = await db.withProof((proof) => db.write(ACQUIRE, [...values, remote ? null : proof]), {
    again: true,
  })
  const [nowText, token, until, wakes, lease] = row
  const now = Number(nowText)
  db.announce(Number(wakes))
  if (typeof token === 'string') return granted(request, Number(token), now)
  if (typeof lease === 'string') return { acquired: true, lease: leaseOf(JSON.parse(lease) as Handed), now }
  return { acquired: false, until: Number(until), now }
}

/** The same for many names at once, in the order in which names are locked. What is not free is left alone. */
const TAKE_MANY = `
  with given as (
    select g.*, n.row, n.seen from (select * from unnest(v_names, v_holders, v_ttls, v_instances, v_floors) with ordinality
      as g(name, holder, ttl, instance, floor, at) order by name collate "C") g
    cross join lateral (select ctid as row, last_token as seen from belfry.names where name = g.name limit 1) n
  ), taken as (
    update belfry.names n set last_token = greatest(n.last_token + 1, v_us, g.floor) from given g where n.ctid = g.row
      and n.last_token = g.seen and not exists (select 1 from belfry.leases where name = g.name) and ${noCrowd('g.name')}
    returning g.*, n.last_token
  ), made as (
    insert into belfry.leases (name, holder, token, acquired_at, expires_at, instance, proof)
    select name, holder, last_token, v_now, v_now + ttl, instance, v_proof from taken
  )
  select t.at, v_now, t.last_token from taken t`

const TAKE_FREE_FUNCTION = operation(
  `take_free(v_names text[], v_holders text[], v_ttls bigint[], v_instances text[], v_floors bigint[], v_proof integer)`,
  'table (at bigint, now_ms bigint, token bigint)',
  `
declare
  v_us bigint := belfry.now_us();
  v_now bigint := v_us / 1000;
  v_new text[];
begin
  perform belfry.durable();
  v_new := array(select n from unnest(v_names) n where not exists (select 1 from belfry.names where name = n));
  if cardinality(v_new) > 0 then perform belfry.make_names(v_new); end if;
  return query ${TAKE_MANY};
end`,
)

export const ACQUIRE_FUNCTIONS = [TAKE_LOCK_FUNCTION, ACQUIRE_FUNCTION, TAKE_FREE_FUNCTION].join('\n')

const TAKE = 'select at, now_ms, token from belfry.take_free($1, $2, $3, $4, $5, $6)'

/** Takes those that are free, in one transaction. Undefined for each that is to be asked for by itself. */
export async function takeFree(
  db: Database,
  requests: readonly AcquireRequest[],
): Promise<(AcquireResult | undefined)[]> {
  const columns = [
    textArray(requests.map(({ name }) => name)),
    textArray(requests.map(({ holder }) => holder)),
    numberArray(requests.map(({ ttlMs }) => Math.ceil(ttlMs))),
    textArray(requests.map(({ instance }) => instance)),
    numberArray(requests.map(({ floor }) => floor)),
  ]
  const rows = await db.withProof((proof) => db.write(TAKE, [...columns, proof]), { again: true })
  const results = requests.map((): AcquireResult | undefined => undefined)
  for (const [place, now, token] of rows) {
    const at = Number(place) - 1
    const request = requests[at]
    if (request !== undefined) results[at] = granted(request, Number(token), Number(now))
  }
  return results
}

function granted({ name, holder, ttlMs, instance }: AcquireRequest, token: number, now: number): AcquireResult {
  const who = instance === undefined ? {} : { instance }
  const lease = { name, holder, token, acquiredAt: now, expiresAt: now + Math.ceil(ttlMs), ...who }
  return { acquired: true, lease, now }
}
