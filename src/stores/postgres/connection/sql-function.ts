/**
 * A function of the database: what locks before it looks, in one round trip.
 *
 * Plans of functions are kept by each session, also when they were made while the tables were still empty. So the ways
 * of reading that are only good for small tables are switched off: whatever the statistics say, a run is found by index.
 * What has to be read that way all the same then looks so expensive that the server would compile it, for 50 ms each time:
 * that is off, too.
 *
 * That leaves a join in which the server may begin with either side, and read all of a table by its index for a list that
 * it was given. So lists come first and look up each row (`cross join lateral … limit 1`, which cannot be turned round),
 * and what writes to those rows finds them again by where they are.
 */
const PLANS =
  'set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_tidscan = on set jit = off'

/**
 * For what joins nothing, and is called so often that every setting counts. Rows that come and go leave entries in their
 * indexes: a plain index scan marks those for the next one, and a bitmap's would read them all again each time.
 */
const FEW_ROWS = 'set enable_seqscan = off set enable_bitmapscan = off'

/** An operation as it is called from outside. */
export function operation(signature: string, returns: string, body: string): string {
  return define(signature, returns, body, PLANS)
}

/** An operation on few rows, each of them found by its key. */
export function smallOperation(signature: string, returns: string, body: string): string {
  return define(signature, returns, body, FEW_ROWS)
}

/** A step of operations: it runs under the settings of its caller. */
export function step(signature: string, returns: string, body: string): string {
  return define(signature, returns, body, '')
}

function define(signature: string, returns: string, body: string, settings: string): string {
  return `create or replace function belfry.${signature} returns ${returns} language plpgsql volatile ${settings} as $belfry$
#variable_conflict use_column
${body.trim()}
$belfry$;
`
}
