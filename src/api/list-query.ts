import { checkOptions } from '../core/checks/known-options.js'
import { DEFAULTS } from '../core/defaults.js'
import { failure, quote } from '../core/errors.js'

export function isLook(look: unknown): boolean {
  return Number.isSafeInteger(look) && (look as number) >= 1
}

/** Checks the filters of a list. A filter must be text, unless `others` has a check for it. */
export function listQuery<Query extends object>(
  query: Query,
  known: readonly (keyof Query & string)[],
  where: string,
  others: Readonly<Record<string, (value: unknown) => boolean>> = {},
): Query & { readonly limit: number } {
  checkOptions(query, [...known, 'limit'], where)
  const { limit = DEFAULTS.list.limit } = query as { readonly limit?: unknown }
  if (!Number.isInteger(limit) || (limit as number) < 1) {
    throw failure('OPTION_INVALID', `${where}: limit is ${quote(limit)}; it must be a whole number of at least 1`)
  }
  for (const name of known) {
    const value: unknown = query[name]
    const isGood = others[name] ?? ((given: unknown) => typeof given === 'string')
    if (value === undefined || isGood(value)) continue
    throw failure('OPTION_INVALID', `${where}: ${name} is ${quote(value)}, which is nothing to look for`)
  }
  return { ...query, limit: limit as number }
}
