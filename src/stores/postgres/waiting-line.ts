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
