import { failure, quote } from '../errors.js'

/** Refuses limits below 1: SQL takes a negative limit for "no limit". */
export function checkPageLimit(limit: number): number {
  if (Number.isSafeInteger(limit) && limit >= 1) return limit
  throw failure('OPTION_INVALID', `a list's limit is ${quote(String(limit))}: use a whole number from 1 on`)
}
