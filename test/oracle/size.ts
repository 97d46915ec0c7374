/** How much to compare: a fixed amount in `npm test`, a chosen amount in the long mode. */
import { type Plan, SOME_ZONES } from './run-cases.js'

const { BELFRY_ORACLE_CASES: ALL, BELFRY_ORACLE_SEED: SEED } = process.env

export const LONG = ALL !== undefined

export const TIMEOUT_MS = LONG ? 24 * 3_600_000 : 300_000

/**
 * `cases` is a number of ticks, of which each expression has ten. The long mode shares its own number out between the
 * libraries in the ratio of their `cases`.
 */
export function plan(cases: number, seed: number): Plan {
  const ticks = ALL === undefined ? cases : (Number(ALL) * cases) / 250_000
  return {
    expressions: Math.round(ticks / 10),
    zones: LONG ? ['UTC', ...Intl.supportedValuesOf('timeZone')] : SOME_ZONES,
    seed: SEED === undefined ? seed : Number(SEED),
  }
}
