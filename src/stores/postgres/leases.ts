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
 * - A waiter that dies: its place expires `waitMs` after it last asked, and with it a lease that was handed to it in
 *   between, unless it has asked again. Only a waiter that died together with the holder who handed the lease to it, in one
 *   process, has the lease for its full time, as that holder would have had.
 * - A release that comes twice, or late: it only ever removes the holder's own row. It hands the lease to the oldest
 *   waiter in the same step.
 * - A release that a crash of the server undoes, which can only be one that handed the lease to nobody: it runs out.
 */
import type { Lease, RenewRequest } from '../../core/lease.js'
import { checkPageLimit } from '../../core/page-limit.js'
import type { Page } from '../../core/store.js'
import { afterPrefix } from '../../core/text-order.js'
import { ACQUIRE_FUNCTIONS } from './acquire.js'
import type { Database } from './connection/database.js'
import { operation } from './connection/sql-function.js'
import { COLUMNS, FROM, LEASE_NAMES, RETURNED_LEASE, toLease } from './lease-row.js'
import { EXPIRY, LEASE_INSTANCE } from './names.js'
import { RELEASE_FUNCTIONS } from './release.js'
import { TAKE_TURN_FUNCTION } from './take-turn.js'

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
    select g.at, g.ttl, l.row from unnest(v_names, v_holders, v_tokens, v_ttls) with ordinality
      as g(name, holder, token, ttl, at) cross join lateral (select ctid as row from belfry.leases
        where name = g.name and holder = g.holder and token = g.token and not released limit 1) l
  ), renewed as (
    update belfry.leases l set expires_at = case when l.run is null then belfry.now_us() / 1000 + g.ttl end,
      proof = case when l.run is null then v_proof end from given g where l.ctid = g.row
    returning g.at, l.*
  )
  select l.at, ${COLUMNS} from renewed l ${LEASE_INSTANCE};
end`,
)

const RENEW = `select at, ${LEASE_NAMES} from belfry.renew($1, $2, $3, $4, $5)`

export async function renewLeases(
  db: Database,
  requests: readonly RenewRequest[],
  manner: { readonly again?: boolean } = {},
): Promise<(Lease | undefined)[]> {
  if (requests.length === 0) return []
  const values = [
    requests.map(({ name }) => name),
    requests.map(({ holder }) => holder),
    requests.map(({ token }) => token),
    requests.map(({ ttlMs }) => Math.ceil(ttlMs)),
  ]
  const remote = requests.every((request) => request.remote)
  const ttlMs = Math.min(...requests.map((request) => request.ttlMs))
  const rows = await db.withProof((proof) => db.write(RENEW, [...values, remote ? null : proof], { ttlMs }), manner)
  const renewed = new Map(rows.map(([at, ...lease]) => [Number(at), toLease(lease)]))
  return requests.map((_, at) => renewed.get(at + 1))
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
  const rows = await db.read(LIST, [name, holder, prefix, afterPrefix(prefix), limit + 1])
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
  v_runs bigint[];
  l belfry.leases;
  r belfry.runs;
begin
  perform belfry.durable();
  count := 0;
  wakes := 0;
  perform 1 from belfry.names where name = v_name for update;
  if not found then return; end if;
  v_runs := array(select run from belfry.leases where name = v_name and run is not null);
  perform 1 from belfry.runs where id = any (v_runs) order by id for update;
  perform belfry.lock_dedupes(v_runs);
  v_us := belfry.now_us();
  for l in select * from belfry.leases where name = v_name order by seq loop
    if l.run is not null then
      select * into r from belfry.runs where id = l.run;
      if found then
        perform belfry.take_over(r, v_us / 1000, false);
        v_lanes := v_lanes || r.schedule;
      end if;
    end if;
    delete from belfry.leases where name = v_name and holder = l.holder;
    count := count + 1;
  end loop;
  wakes := 2 | 4 | 8 | belfry.hand_on(array[v_name], v_lanes, v_us, 'wait');
end`,
)

export const LEASE_FUNCTIONS = [
  ACQUIRE_FUNCTIONS,
  RENEW_FUNCTION,
  RELEASE_FUNCTIONS,
  TAKE_TURN_FUNCTION,
  RESET_FUNCTION,
].join('\n')

const RESET = 'select count, wakes from belfry.reset($1)'

export async function resetLease(db: Database, name: string): Promise<number> {
  const [row] = await db.writeOnce(RESET, [name])
  db.announce(Number(row?.[1]))
  return Number(row?.[0])
}
