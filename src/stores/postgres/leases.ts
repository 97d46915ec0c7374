/**
 * Locks. One rule decides everything: a lease is its holder's until its time is over AND somebody else took it.
 *
 * - Two that ask at once: whoever gets the name's row first takes the permit; the second finds it busy. Its `until` says
 *   when to ask again, and with `waitMs` it has a place in the line.
 * - One that asks for what is plainly busy and does not queue: it only looks. A crowd that polls a lock costs it nothing.
 * - A holder that stalls past its time and comes back: if nobody took the lease, it renews and goes on. If somebody
 *   did, its row is gone, and renew, release and (for a run) settle are refused.
 * - A holder that dies: nobody has to notice. The next that asks takes its place, with a higher token: when its time is
 *   over or, where instances prove that they live, at once.
 * - A waiter that dies: its place is given up `waitMs` after it last asked. If the lease was handed to it in between, it
 *   runs out like any other.
 * - A release that comes twice, or late: it only ever removes the holder's own row. It hands the lease to the oldest
 *   waiter in the same step.
 */
import type { AcquireRequest, AcquireResult, Lease, ReleaseRequest, RenewRequest } from '../../core/lease.js'
import { checkPageLimit } from '../../core/page-limit.js'
import type { Page } from '../../core/store.js'
import { textArray } from './array-text.js'
import type { Database, Row } from './connection.js'
import { HANDED } from './listener.js'
import { EXPIRY, LEASE_EXPIRY, LEASE_INSTANCE } from './names.js'
import { operation, smallOperation } from './sql-function.js'
import { waitingForKey } from './waiting-line.js'
import { WAKE_GRANTED, WAKE_LEASES } from './wakes.js'

const COLUMNS = `l.name, l.holder, l.token, l.acquired_at, ${LEASE_EXPIRY}, l.instance, l.run, l.released`
const RETURNED_LEASE = `name text, holder text, token bigint, acquired_at bigint, expires_at bigint, instance text,
    run bigint, released boolean`
const LEASE_NAMES = 'name, holder, token, acquired_at, expires_at, instance, run, released'
const FROM = `from belfry.leases l ${LEASE_INSTANCE}`

function toLease([name, holder, token, acquiredAt, expiresAt, instance, run, released]: Row): Lease {
  return {
    ...{ name: name ?? '', holder: holder ?? '', token: Number(token) },
    ...{ acquiredAt: Number(acquiredAt), expiresAt: Number(expiresAt) },
    ...(instance === null || instance === undefined ? {} : { instance }),
    ...(run === null || run === undefined ? {} : { run }),
    ...(released === 't' ? { released: true as const } : {}),
  }
}

/** Nobody stands in line for the name: then there is nothing to hand on. */
const NO_CROWD = `not exists (select 1 from belfry.waiters where name = v_name)
    and not exists (select 1 from belfry.runs where ${waitingForKey('v_name')})`

const COUNT_HOLDERS = `
  select count(*), count(*) filter (where ${EXPIRY} > v_now), bool_or(l.holder = v_holder),
    min(${EXPIRY}) filter (where ${EXPIRY} > v_now)
    into v_holders, v_live, v_own, v_until ${FROM} where l.name = v_name`

const MOMENT_MS = 10

const NO_LEASE = `null::text, null::text, null::bigint, null::bigint, null::bigint, null::text, null::bigint,
      null::boolean`

const TAKE_PLACE = `
      insert into belfry.waiters as w (name, holder, ttl_ms, permits, instance, proof, floor, until)
        values (v_name, v_holder, v_ttl, v_permits, v_instance, v_proof, v_floor, v_now + v_wait)
        on conflict on constraint waiters_pkey do update set ttl_ms = excluded.ttl_ms, permits = excluded.permits,
          instance = excluded.instance, proof = excluded.proof, floor = excluded.floor, until = excluded.until`

/**
 * What most locks meet: a name that was there before, which nobody holds or waits for. One statement sees things as they
 * were when it began. So that it takes nothing that was given away since, the name's last token must still be the one of
 * then: every grant moves it.
 */
const TAKE_FREE = `
  with taken as (
    update belfry.names n set last_token = greatest(n.last_token + 1, v_us, v_floor) where n.name = v_name
      and n.last_token = (select s.last_token from belfry.names s where s.name = v_name)
      and not exists (select 1 from belfry.leases where name = v_name) and ${NO_CROWD}
    returning n.last_token
  )
  insert into belfry.leases (name, holder, token, acquired_at, expires_at, instance, proof)
    select v_name, v_holder, last_token, v_now, v_now + v_ttl, v_instance, v_proof from taken returning token into v_token`

const ACQUIRE_FUNCTION = smallOperation(
  `acquire(v_name text, v_holder text, v_ttl bigint, v_permits integer, v_instance text, v_floor bigint, v_wait bigint,
    v_proof integer)`,
  `table (now_ms bigint, until bigint, wakes integer, ${RETURNED_LEASE})`,
  `
declare
  v_us bigint := belfry.now_us();
  v_now bigint := v_us / 1000;
  v_holders integer;
  v_live integer;
  v_own boolean;
  v_until bigint;
  v_token bigint;
  v_lanes text[];
  v_granted text[];
  v_wakes integer;
begin
  perform belfry.durable();
  if v_wait <= 0 or not exists (select 1 from belfry.leases where name = v_name) then ${TAKE_FREE}; end if;
  if v_token is not null then
    return query select v_now, null::bigint, 0, v_name, v_holder, v_token, v_now, v_now + v_ttl, v_instance, null::bigint,
      false;
    return;
  end if;
  if v_wait <= 0 then
    -- Plainly busy: to look is enough.
    ${COUNT_HOLDERS};
    if v_live >= v_permits and not v_own and ${NO_CROWD} then
      return query select v_now, v_until, 0, ${NO_LEASE};
      return;
    end if;
  end if;
  perform 1 from belfry.names n where n.name = v_name for update;
  if not found then perform belfry.lock_names(array[v_name]); end if;
  v_us := belfry.now_us();
  v_now := v_us / 1000;
  ${COUNT_HOLDERS};
  if v_live >= v_permits and v_own is not true and v_wait > 0 then
    -- Plainly busy: a place in the line. It need not survive a crash of the server, its holder asks again anyway; and
    -- others wait for the name meanwhile.
    ${TAKE_PLACE};
    perform set_config('synchronous_commit', 'off', true);
    return query select v_now, v_until, 0, ${NO_LEASE};
    return;
  end if;
  if v_holders < v_permits and v_own is not true and ${NO_CROWD} then
    -- Plainly free.
    update belfry.names n set last_token = greatest(n.last_token + 1, v_us, v_floor) where n.name = v_name
      returning n.last_token into v_token;
    insert into belfry.leases (name, holder, token, acquired_at, expires_at, instance, proof)
      values (v_name, v_holder, v_token, v_now, v_now + v_ttl, v_instance, v_proof);
    return query select v_now, null::bigint, 0, v_name, v_holder, v_token, v_now, v_now + v_ttl, v_instance, null::bigint,
      false;
    return;
  end if;

  select s.lanes, s.wakes into v_lanes, v_wakes from belfry.serve_waiters(v_name, v_us) s;
  ${COUNT_HOLDERS};
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
    v_wakes := v_wakes | belfry.hand_on(array[v_name], v_lanes, v_us);
    -- Without anybody whose time is still to come, one just now proves that it lives: that is over in a moment.
    return query select v_now, coalesce(v_until, v_now + ${MOMENT_MS}), v_wakes, ${NO_LEASE};
    return;
  end if;
  v_lanes := v_lanes || v_granted;
  delete from belfry.waiters w where w.name = v_name and w.holder = v_holder;
  v_wakes := v_wakes | belfry.hand_on(array[v_name], v_lanes, v_us);
  return query select v_now, null::bigint, v_wakes, ${COLUMNS} ${FROM} where l.name = v_name and l.holder = v_holder;
end`,
)

const ACQUIRE = `select now_ms, until, wakes, ${LEASE_NAMES}
  from belfry.acquire($1, $2, $3, $4, $5, $6, $7, $8)`

export async function acquireLease(db: Database, request: AcquireRequest): Promise<AcquireResult> {
  const { name, holder, ttlMs, permits, instance = null, floor, waitMs = 0 } = request
  const values = [name, holder, Math.ceil(ttlMs), permits, instance, floor, Math.ceil(waitMs)]
  const [row = []] = await db.inPerson((proof) => db.write(ACQUIRE, [...values, proof]), { again: true })
  const [now, until, wakes, ...lease] = row
  db.announce(Number(wakes))
  return lease[0] === null
    ? { acquired: false, until: Number(until), now: Number(now) }
    : { acquired: true, lease: toLease(lease), now: Number(now) }
}

/** The lease of a run's key cannot be extended by itself, and is answered as it is. */
const RENEW_FUNCTION = operation(
  'renew(v_names text[], v_holders text[], v_tokens bigint[], v_ttls bigint[], v_proof integer)',
  `table (at bigint, ${RETURNED_LEASE})`,
  `
begin
  perform belfry.durable();
  -- Without the name, somebody who found the lease expired could take it although it was renewed in between.
  perform 1 from belfry.names n where n.name = any (v_names) order by n.name for update;
  return query with given as (
    select * from unnest(v_names, v_holders, v_tokens, v_ttls) with ordinality as g(name, holder, token, ttl, at)
  ), renewed as (
    update belfry.leases l set expires_at = case when l.run is null then belfry.now_us() / 1000 + g.ttl end,
      proof = case when l.run is null then v_proof end from given g
    where l.name = g.name and l.holder = g.holder and l.token = g.token and not l.released
    returning g.at, l.*
  )
  select l.at, ${COLUMNS} from renewed l ${LEASE_INSTANCE};
end`,
)

const RENEW = `select at, ${LEASE_NAMES} from belfry.renew($1, $2, $3, $4, $5)`

export async function renewLeases(db: Database, requests: readonly RenewRequest[]): Promise<(Lease | undefined)[]> {
  if (requests.length === 0) return []
  const values = [
    requests.map(({ name }) => name),
    requests.map(({ holder }) => holder),
    requests.map(({ token }) => token),
    requests.map(({ ttlMs }) => Math.ceil(ttlMs)),
  ]
  const rows = await db.inPerson((proof) => db.write(RENEW, [...values, proof]))
  const renewed = new Map(rows.map(([at, ...lease]) => [Number(at), toLease(lease)]))
  return requests.map((_, at) => renewed.get(at + 1))
}

/**
 * Whoever was next waits for nothing else, so he is told by himself: here by the answer, elsewhere by the commit. Nobody
 * else has to look then.
 */
const TELL = `
      if l.holder = any (v_here) then
        handed := coalesce(handed, '{}') || json_build_object('holder', l.holder, 'token', l.token,
          'acquiredAt', l.acquired_at, 'expiresAt', l.expires_at, 'instance', l.instance, 'proof', l.proof);
      elsif v_channel <> '' then
        perform pg_notify(v_channel, '${HANDED}' || l.holder);
      end if;`
const TELL_NEXT = `
  if wakes & ${WAKE_GRANTED} <> 0 then
    wakes := wakes & ~${WAKE_GRANTED | WAKE_LEASES};
    for l in select * from belfry.leases where name = v_name and run is null and acquired_at = v_us / 1000 loop
      ${TELL}
    end loop;
  end if;`

/**
 * What most locks meet that are waited for: one holder, who gives it back, and a next one whose place is still good. The
 * name is locked.
 */
const PASS_ON = `
  with next as (
    select w.* from (select * from belfry.waiters where name = v_name order by seq limit 1) w
    where w.until > v_us / 1000 and w.permits = 1 and (select count(*) from belfry.leases where name = v_name) = 1
      and exists (select 1 from belfry.leases where name = v_name and holder = v_holder and not released and run is null)
  ), gone as (
    delete from belfry.leases l using next where l.name = v_name and l.holder = v_holder
  ), served as (
    delete from belfry.waiters w using next where w.name = v_name and w.holder = next.holder
  ), token as (
    update belfry.names n set last_token = greatest(n.last_token + 1, v_us, next.floor) from next where n.name = v_name
    returning n.last_token
  )
  insert into belfry.leases (name, holder, token, acquired_at, expires_at, instance, proof)
    select v_name, next.holder, token.last_token, v_us / 1000, v_us / 1000 + next.ttl_ms, next.instance, next.proof
    from next, token returning * into l`

const RELEASE_FUNCTION = smallOperation(
  `release(v_name text, v_holder text, v_min_hold bigint, v_here text[], v_channel text,
    out had boolean, out wakes integer, out handed json[])`,
  'record',
  `
declare
  v_us bigint;
  l belfry.leases;
begin
  perform belfry.durable();
  had := false;
  wakes := 0;
  perform 1 from belfry.names where name = v_name for update;
  if not found then return; end if;
  v_us := belfry.now_us();
  if v_min_hold <= 0 then
    delete from belfry.leases where name = v_name and holder = v_holder and not released and run is null and ${NO_CROWD};
    if found then
      had := true;
      wakes := 4;
      return;
    end if;
    ${PASS_ON};
    if found then
      had := true;
      ${TELL}
      return;
    end if;
  end if;
  delete from belfry.waiters where name = v_name and holder = v_holder;
  had := found;
  select * into l from belfry.leases where name = v_name and holder = v_holder and not released and run is null;
  if found then
    had := true;
    wakes := 4;
    if l.acquired_at + v_min_hold <= v_us / 1000 then
      delete from belfry.leases where name = v_name and holder = v_holder;
    else
      update belfry.leases set released = true, expires_at = l.acquired_at + v_min_hold
        where name = v_name and holder = v_holder;
    end if;
  end if;
  wakes := wakes | belfry.hand_on(array[v_name], '{}', v_us);
  ${TELL_NEXT}
end`,
)

const RELEASE = 'select had, wakes, array_to_json(handed) from belfry.release($1, $2, $3, $4, $5)'

/** A lease that was handed to somebody who waits in this process. */
export interface Handed {
  readonly holder: string
  readonly token: number
  readonly acquiredAt: number
  readonly expiresAt: number
  readonly instance: string | null
  readonly proof: number | null
}

/** `here` are those who wait for the name in this process. */
export async function releaseLease(
  db: Database,
  { name, holder, minHoldMs = 0 }: ReleaseRequest,
  here: readonly string[],
): Promise<{ readonly had: boolean; readonly handed: readonly Handed[] }> {
  const values = [name, holder, Math.ceil(minHoldMs), textArray(here), db.channel ?? '']
  const [row] = await db.write(RELEASE, values)
  db.announce(Number(row?.[1]))
  return { had: row?.[0] === 't', handed: JSON.parse(row?.[2] ?? '[]') as Handed[] }
}

const NOW = '(select belfry.now_us() / 1000)'
const INSPECT = `select ${COLUMNS} ${FROM} where l.name = $1 and ${EXPIRY} > ${NOW} order by l.seq`

export async function inspectLease(db: Database, name: string): Promise<Lease[]> {
  return (await db.read(INSPECT, [name])).map(toLease)
}

const LIST = `select ${COLUMNS} ${FROM} where (l.name, l.holder) > ($1, $2) and l.name >= $3 and l.name < $4
  and ${EXPIRY} > ${NOW} order by l.name, l.holder limit $5`

export async function listLeases(
  db: Database,
  query: { readonly prefix?: string; readonly after?: string; readonly limit: number },
): Promise<Page<Lease>> {
  const { prefix = '', after = '', limit } = query
  checkPageLimit(limit)
  const [name = '', holder = ''] = after.split('\n')
  const rows = await db.read(LIST, [name, holder, prefix, `${prefix}\u{10ffff}`, limit + 1])
  const items = rows.slice(0, limit).map(toLease)
  const last = items.at(-1)
  return rows.length > limit && last !== undefined ? { items, next: `${last.name}\n${last.holder}` } : { items }
}

const RESET_FUNCTION = operation(
  'reset(v_name text, out count integer, out wakes integer)',
  'record',
  `
declare
  v_us bigint;
  v_lanes text[] := '{}';
  l belfry.leases;
  r belfry.runs;
begin
  perform belfry.durable();
  count := 0;
  wakes := 0;
  perform 1 from belfry.names where name = v_name for update;
  if not found then return; end if;
  v_us := belfry.now_us();
  for l in select * from belfry.leases where name = v_name order by seq loop
    if l.run is not null then
      select * into r from belfry.runs where id = l.run for update;
      if found then
        perform belfry.take_over(r, v_us / 1000, false);
        v_lanes := v_lanes || r.schedule;
      end if;
    end if;
    delete from belfry.leases where name = v_name and holder = l.holder;
    count := count + 1;
  end loop;
  wakes := 2 | 4 | 8 | belfry.hand_on(array[v_name], v_lanes, v_us);
end`,
)

export const LEASE_FUNCTIONS = [ACQUIRE_FUNCTION, RENEW_FUNCTION, RELEASE_FUNCTION, RESET_FUNCTION].join('\n')

const RESET = 'select count, wakes from belfry.reset($1)'

export async function resetLease(db: Database, name: string): Promise<number> {
  const [row] = await db.writeOnce(RESET, [name])
  db.announce(Number(row?.[1]))
  return Number(row?.[0])
}
