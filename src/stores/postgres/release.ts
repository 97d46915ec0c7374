/** Giving a lock back, and handing it to the next in line. `leases.ts` says how locks work. */
import type { ReleaseRequest } from '../../core/lease.js'
import { textArray } from './array-text.js'
import type { Database } from './connection.js'
import { noCrowd } from './lease-row.js'
import { HANDED } from './listener.js'
import { operation, smallOperation } from './sql-function.js'
import { WAKE_GRANTED, WAKE_LEASES } from './wakes.js'

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
    delete from belfry.leases where name = v_name and holder = v_holder and not released and run is null and ${noCrowd('v_name')};
    if found then
      -- Nobody waits, so nobody has to be told.
      had := true;
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
    if l.acquired_at + v_min_hold <= v_us / 1000 then
      delete from belfry.leases where name = v_name and holder = v_holder;
    else
      update belfry.leases set released = true, expires_at = l.acquired_at + v_min_hold
        where name = v_name and holder = v_holder;
    end if;
  end if;
  wakes := wakes | belfry.hand_on(array[v_name], '{}', v_us, 'wait');
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

/** Many at once, as far as nobody waits for them. */
const GIVE_BACK_FUNCTION = operation(
  'give_back_locks(v_names text[], v_holders text[])',
  'setof bigint',
  `
begin
  perform belfry.durable();
  perform 1 from belfry.names where name = any (v_names) order by name for update;
  return query with gone as (
    delete from belfry.leases l using (
      select g.at, l.row from unnest(v_names, v_holders) with ordinality as g(name, holder, at)
      cross join lateral (select ctid as row from belfry.leases where name = g.name and holder = g.holder
        and not released and run is null limit 1) l where ${noCrowd('g.name')}) g
    where l.ctid = g.row returning g.at
  ) select at from gone;
end`,
)

export const RELEASE_FUNCTIONS = [RELEASE_FUNCTION, GIVE_BACK_FUNCTION].join('\n')

const GIVE_BACK = 'select belfry.give_back_locks($1, $2)'

/** Gives those back that nobody waits for, in one transaction. False for each that is to be released by itself. */
export async function giveBack(db: Database, requests: readonly ReleaseRequest[]): Promise<boolean[]> {
  const names = textArray(requests.map(({ name }) => name))
  const rows = await db.write(GIVE_BACK, [names, textArray(requests.map(({ holder }) => holder))])
  const results = requests.map(() => false)
  for (const [at] of rows) results[Number(at) - 1] = true
  return results
}
