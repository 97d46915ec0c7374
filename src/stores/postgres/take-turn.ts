/**
 * What a process wants of a name that several in it wait for, in one step: a holder gives it back, and others take places
 * in its line. `leases.ts` says how locks work.
 */
import type { AcquireRequest, ReleaseRequest } from '../../core/lease.js'
import { PROLONGED } from './acquire.js'
import { numberArray, textArray } from './connection/array-text.js'
import type { Database } from './connection/database.js'
import { smallOperation } from './connection/sql-function.js'
import { WAKE_GRANTED } from './connection/wakes.js'
import { FROM, type Handed, handedLeases } from './lease-row.js'
import { EXPIRY } from './names.js'
import { LET_GO, LOCK_NAME, NEED_NOT_LAST, PASS_ON, PASSING, TELL, TELL_NEXT } from './release.js'
import { DURABLE } from './transactions/durable.js'

/** Who was handed the lock, and has not heard of it, is no longer in line: he has it for its full time from now. */
const TAKE_PLACES = `
  for i in 1 .. cardinality(v_holders) loop
    insert into belfry.waiters as w (name, holder, ttl_ms, permits, instance, floor, until, proof)
      select v_name, v_holders[i], v_ttls[i], v_permits[i], v_instances[i], v_floors[i], v_us / 1000 + v_waits[i], v_proofs[i]
      where not exists (select 1 from belfry.leases where name = v_name and holder = v_holders[i] and not released)
      on conflict on constraint waiters_pkey do update set ttl_ms = excluded.ttl_ms, permits = excluded.permits,
        instance = excluded.instance, proof = excluded.proof, floor = excluded.floor, until = ${PROLONGED};
    if not found then
      update belfry.leases set expires_at = v_us / 1000 + v_ttls[i], proof = v_proofs[i]
        where name = v_name and holder = v_holders[i] and run is null and not released returning * into l;
      v_extended := true;
      ${TELL}
    end if;
  end loop`

/** Who asks in this very step has proved that it lives: what it was granted lasts its full time. */
const CONFIRM = `
  if wakes & ${WAKE_GRANTED} <> 0 then
    update belfry.leases l set expires_at = v_us / 1000 + g.ttl from unnest(v_holders, v_ttls) as g(holder, ttl)
      where l.name = v_name and l.holder = g.holder and l.run is null and l.acquired_at = v_us / 1000;
  end if;`

export const TAKE_TURN_FUNCTION = smallOperation(
  `take_turn(v_name text, v_holder text, v_min_hold bigint, v_here text[], v_channel text, v_holders text[],
    v_ttls bigint[], v_permits integer[], v_instances text[], v_floors bigint[], v_waits bigint[], v_proofs integer[],
    out had boolean, out wakes integer, out handed text, out now_ms bigint, out until bigint)`,
  'record',
  `
declare
  v_us bigint;
  v_extended boolean := false;
  ${PASSING}
begin
  ${DURABLE}
  had := false;
  wakes := 0;
  ${LOCK_NAME};
  if not found then
    perform belfry.lock_names(array[v_name]);
    ${LOCK_NAME};
  end if;
  v_us := belfry.now_us();
  now_ms := v_us / 1000;
  ${TAKE_PLACES};
  if v_holder is not null then
    if v_min_hold <= 0 then
      ${PASS_ON};
      if found then
        had := true;
        until := l.expires_at;
        ${TELL}
        return;
      end if;
    end if;
    ${LET_GO}
  end if;
  wakes := wakes | belfry.hand_on(array[v_name], '{}', v_us, 'wait');
  -- Nor need a place survive a crash of the server: its holder asks again anyway.
  if wakes = 0 and v_min_hold <= 0 and not v_extended then ${NEED_NOT_LAST}; end if;
  ${CONFIRM}
  ${TELL_NEXT}
  select min(${EXPIRY}) filter (where ${EXPIRY} > now_ms) into until ${FROM} where l.name = v_name;
end`,
)

const TAKE_TURN = `select had, wakes, handed, now_ms, until
  from belfry.take_turn($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

/** What is wanted of a name in one step. */
export interface Turn {
  readonly name: string
  /** Who gives the name back, if anybody does. */
  readonly release: ReleaseRequest | undefined
  readonly places: readonly AcquireRequest[]
}

export interface TurnTaken {
  readonly had: boolean
  /** An earlier try of the same step may have released the lock. */
  readonly isInDoubt: boolean
  readonly handed: readonly Handed[]
  /** What those are told who have a place now. */
  readonly now: number
  readonly until: number
}

/** `here` are those who wait for the name in this process. */
export async function takeTurn(db: Database, turn: Turn, here: readonly string[]): Promise<TurnTaken> {
  const { name, release, places } = turn
  const values = [
    ...[name, release?.holder ?? null, Math.ceil(release?.minHoldMs ?? 0), textArray(here), db.channel ?? ''],
    textArray(places.map(({ holder }) => holder)),
    numberArray(places.map(({ ttlMs }) => Math.ceil(ttlMs))),
    numberArray(places.map(({ permits }) => permits)),
    textArray(places.map(({ instance }) => instance)),
    numberArray(places.map(({ floor }) => floor)),
    numberArray(places.map(({ waitMs = 0 }) => Math.ceil(waitMs))),
  ]
  let tries = 0
  let isInDoubt = false
  const write = async (proof: number | null) => {
    const proofs = numberArray(places.map(({ remote }) => (remote ? undefined : (proof ?? undefined))))
    const told = await db.writeReportingDoubt(TAKE_TURN, [...values, proofs])
    tries += 1
    isInDoubt ||= told.isInDoubt || tries > 1
    return told.rows
  }
  // Nobody has to prove that he lives to give something back.
  const [row = []] = places.length === 0 ? await write(null) : await db.withProof(write, { again: true })
  const [had, wakes, handed, now, until] = row
  db.announce(Number(wakes))
  return {
    had: had === 't',
    isInDoubt,
    handed: handedLeases(handed),
    now: Number(now),
    until: until === null ? Number(now) : Number(until),
  }
}
