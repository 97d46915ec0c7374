import { failure, quote } from './errors.js'

/** How many items a page may have: a store must not take a negative number, or none, for "all". */
export function checkPageLimit(limit: number): number {
  if (Number.isSafeInteger(limit) && limit >= 1) return limit
  throw failure('OPTION_INVALID', `a list's limit is ${quote(String(limit))}: use a whole number from 1 on`)
}
