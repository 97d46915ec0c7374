/** What a waiting run stands in line for: the key's name, or the schedule. One index has all lines, by this expression. */
export const LINE = 'case when waits_for = 3 then key else schedule end'

/** The runs that wait for a key, by an expression for its name. */
export function waitingForKey(name: string): string {
  return `state = 0 and waits_for = 3 and (${LINE}) = ${name}`
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
