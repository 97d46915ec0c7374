/** What a waiting run stands in line for: the key's name, or the schedule. One index has all lines, by this expression. */
export const LINE = 'case when waits_for = 3 then key else schedule end'

/** The runs that wait for a key, by an expression for its name. */
export function waitingForKey(name: string): string {
  return `state = 0 and waits_for = 3 and (${LINE}) = ${name}`
}

/**
 * The oldest run of a key that could be claimed. Said so that only the index of keys has it in this order: where many runs
 * are ready and there are few keys, the server would go through all runs by their numbers, taking the first for near.
 */
export function firstDueOfKey(name: string): string {
  return `(select id from belfry.runs where (key, state) >= (${name}, 1::smallint) and (key, state) <= (${name}, 1::smallint)
    and key is not null and state < 3 and not running and ready_at <= v_now order by key, state, id limit 1)`
}

/** The runs that wait for others of their schedule. */
export function waitingForLane(schedule: string): string {
  return `state = 0 and waits_for = 2 and (${LINE}) = ${schedule}`
}

/**
 * Places and leases in one order: a lease that came from a place has its number. Whoever passes it on looks for the next
 * place from there, and not through all that have gone since the table was last cleaned.
 */
export const LINE_TABLES = `
create sequence belfry.line;
alter table belfry.leases alter seq drop identity, alter seq set default nextval('belfry.line');
alter table belfry.waiters alter seq drop identity, alter seq set default nextval('belfry.line');
select setval('belfry.line', 1 + greatest((select max(seq) from belfry.leases), (select max(seq) from belfry.waiters), 0));
`
