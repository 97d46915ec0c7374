import { nextToken } from '../locks/token.js'

/**
 * The version of a schedule that is written now. Versions go by the rule of tokens: above the last one, and not below the
 * store's clock in microseconds. So a store that has lost its last writes does not give a lost version out again, which
 * a client may still hold for `ifVersion`.
 */
export function nextVersion(last: number, storeNow: number): number {
  return nextToken(last, storeNow, 0)
}
