/** Giving a lock back, and handing it to the next in line. `leases.ts` says how locks work. */
import type { ReleaseRequest } from '../../core/lease.js'
import { textArray } from './connection/array-text.js'
import type { Database } from './connection/database.js'
import { HANDED } from './connection/listener.js'
import { operation, smallOperation } from './connection/sql-function.js'
import { WAKE_GRANTED, WAKE_LEASES } from './connection/wakes.js'
import { HANDED_LEASE, type Handed, handedLeases, noCrowd } from './lease-row.js'
import { DURABLE } from './transactions/durable.js'

/**
 * Whoever was next waits for nothing else, so he is told by himself: here by the answer, elsewhere by the commit. Nobody
 * else has to look then.
 */
export const TELL = `
      if l.holder = any (v_here) then
        handed := concat_ws(',', handed, ${HANDED_LEASE});
      elsif v_channel <> '' then
        perform pg_notify(v_channel, '${HANDED}' || ${HANDED_LEASE});
      end if;`
export const TELL_NEXT = `
  if wakes & ${WAKE_GRANTED} <> 0 then
    wakes := wakes & ~${WAKE_GRANTED | WAKE_LEASES};
    for l in select * from belfry.leases where name = v_name and run is null and acquired_at = v_us / 1000 loop
      ${TELL}
    end loop;
  end if;`

/**
 * Locks the name, with a token for whoever is next. One that nobody needs is skipped: tokens only have to grow.
 */
export const LOCK_NAME = `update belfry.names set last_token = greatest(last_token + 1, belfry.now_us()) where name = v_name
    returning last_token into v_token`

/**
 * What most locks meet that are waited for: one holder, who gives it back, and a next one whose place is still good. The
 * name is locked. `w` was the place and `l` is the new lease then. Every statement counts here.
 *
 * The lease lasts until the place would have expired, because only asking again proves that the waiter lives. A waiter of
 * an instance in this very process needs no such proof.
 */
export const PASS_ON = `
  select seq into v_seq from belfry.leases where name = v_name and holder = v_holder and not released and run is null;
  delete from belfry.waiters w using (
    select f.ctid as row from belfry.waiters f where f.name = v_name and f.seq > v_seq order by f.seq limit 1) first
    where w.ctid = first.row and w.until > v_us / 1000 and w.permits = 1 and w.floor <= v_token
      and not exists (select 1 from belfry.leases o where o.name = v_name and o.holder <> v_holder)
    returning w.* into w;
  if found then
    update belfry.leases set seq = w.seq, holder = w.holder, token = v_token, acquired_at = v_us / 1000,
      expires_at = case when w.instance is not null and w.holder = any (v_here) then v_us / 1000 + w.ttl_ms
        else least(v_us / 1000 + w.ttl_ms, w.until) end, instance = w.instance, proof = w.proof
      where name = v_name and holder = v_holder returning * into l;
  end if`
export const PASSING = `
  w belfry.waiters;
  l belfry.leases;
  v_token bigint;
  v_seq bigint;`

/** A place in the line and a lease, whichever there is. The lease may have to be held on to. */
export const LET_GO = `
  delete from belfry.waiters where name = v_name and holder = v_holder;
  had := found;
  select * into l from belfry.leases where name = v_name and holder = v_holder and not released and run is null;
  if found then
    had := true;
    if l.acquired_at + v_min_hold <= v_us / 1000 then
      delete from belfry.leases where name = v_name and holder = v_holder;
    else
      update belfry.leases set released = true, expires_at = l.acquired_at + v_min_hold
        where name = v_name and holder = v_holder;
    end if;
  end if;`

/**
 * A lock that is given back and goes to nobody need not be waited for on the disk: if a crash of the server undoes it, it
 * runs out as if its holder had died. Whoever takes it next waits for both. One that is held on to must be: it may have
 * to last for longer than it would have without.
 */
export const NEED_NOT_LAST = `perform set_config('synchronous_commit', 'off', true)`

/** The short way, for a lock that nobody waits for: nobody has to be told. False for all that has to go the long way. */
const FREE_LOCK_FUNCTION = smallOperation(
  'free_lock(v_name text, v_holder text)',
  'boolean',
  `
begin
  ${DURABLE}
  perform 1 from belfry.names where name = v_name for update;
  delete from belfry.leases where name = v_name and holder = v_holder and not released and run is null
    and ${noCrowd('v_name')};
  if not found then return false; end if;
  ${NEED_NOT_LAST};
  return true;
end`,
)

const FREE_LOCK = 'select belfry.free_lock($1, $2)'

/** What became of a release that was tried the short way; `in doubt` when an earlier try may have released the lock. */
export type Freed = 'freed' | 'in doubt' | 'not freed'

export async function freeLock(db: Database, { name, holder }: ReleaseRequest): Promise<Freed> {
  const { rows, isInDoubt } = await db.writeReportingDoubt(FREE_LOCK, [name, holder])
  return rows[0]?.[0] === 't' ? 'freed' : isInDoubt ? 'in doubt' : 'not freed'
}

const RELEASE_FUNCTION = smallOperation(
  `release(v_name text, v_holder text, v_min_hold bigint, v_here text[], v_channel text,
    out had boolean, out wakes integer, out handed text)`,
  'record',
  `
declare
  v_us bigint;
  ${PASSING}
begin
  ${DURABLE}
  had := false;
  wakes := 0;
  ${LOCK_NAME};
  if not found then return; end if;
  v_us := belfry.now_us();
  if v_min_hold <= 0 then
    ${PASS_ON};
    if found then
      had := true;
      ${TELL}
      return;
    end if;
  end if;
  ${LET_GO}
  wakes := wakes | belfry.hand_on(array[v_name], '{}', v_us, 'wait');
  if wakes = 0 and v_min_hold <= 0 then ${NEED_NOT_LAST}; end if;
  ${TELL_NEXT}
end`,
)

const RELEASE = 'select had, wakes, handed from belfry.release($1, $2, $3, $4, $5)'

/** `here` are those who wait for the name in this process. */
export async function releaseLease(
  db: Database,
  { name, holder, minHoldMs = 0 }: ReleaseRequest,
  here: readonly string[],
): Promise<{ readonly had: boolean; readonly isInDoubt: boolean; readonly handed: readonly Handed[] }> {
  const values = [name, holder, Math.ceil(minHoldMs), textArray(here), db.channel ?? '']
  const { rows, isInDoubt } = await db.writeReportingDoubt(RELEASE, values)
  const [row] = rows
  db.announce(Number(row?.[1]))
  return { had: row?.[0] === 't', isInDoubt, handed: handedLeases(row?.[2]) }
}

/** Many at once, as far as nobody waits for them. */
const GIVE_BACK_FUNCTION = operation(
  'give_back_locks(v_names text[], v_holders text[])',
  'setof bigint',
  `
begin
  perform belfry.durable();
  perform 1 from belfry.names where name = any (v_names) order by name for update;
  ${NEED_NOT_LAST};
  return query with gone as (
    delete from belfry.leases l using (
      select g.at, l.row from unnest(v_names, v_holders) with ordinality as g(name, holder, at)
      cross join lateral (select ctid as row from belfry.leases where name = g.name and holder = g.holder
        and not released and run is null limit 1) l where ${noCrowd('g.name')}) g
    where l.ctid = g.row returning g.at
  ) select at from gone;
end`,
)

export const RELEASE_FUNCTIONS = [FREE_LOCK_FUNCTION, RELEASE_FUNCTION, GIVE_BACK_FUNCTION].join('\n')

const GIVE_BACK = 'select belfry.give_back_locks($1, $2)'

/** Gives those back that nobody waits for, in one transaction. What is not freed is to be released by itself. */
export async function giveBack(db: Database, requests: readonly ReleaseRequest[]): Promise<Freed[]> {
  const names = textArray(requests.map(({ name }) => name))
  const holders = textArray(requests.map(({ holder }) => holder))
  const { rows, isInDoubt } = await db.writeReportingDoubt(GIVE_BACK, [names, holders])
  const results = requests.map((): Freed => (isInDoubt ? 'in doubt' : 'not freed'))
  for (const [at] of rows) results[Number(at) - 1] = 'freed'
  return results
}
