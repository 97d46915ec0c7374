import { randomUUID } from 'node:crypto'
import { failure, quote } from '../../core/errors.js'
import { checkOptions } from '../../core/known-options.js'
import { checkName } from '../../core/names.js'
import { type LockOptions, parseLockOptions } from './lock-options.js'

export interface GrantOptions extends Pick<LockOptions, 'ttl' | 'wait' | 'permits'> {
  /** Names the acquisition, so that repeating it finds the same lease. Default a new name. */
  readonly holder?: string
  /** Ends the waiting. */
  readonly signal?: AbortSignal
}

/** Which lease is meant: by its token, and by its holder where it may have run out. */
export interface GrantRef {
  readonly token: number
  readonly holder?: string
}

export function parseGrant(name: string, options: GrantOptions) {
  checkOptions(options, ['ttl', 'wait', 'permits', 'holder', 'signal'], `lock "${name}"`)
  const { holder = randomUUID(), signal, ...rest } = options
  const { ttlMs, waitMs, permits } = parseLockOptions(name, rest)
  return { holder: checkName(holder, `holder of lock "${name}"`), signal, ttlMs, waitMs, permits }
}

export function checkToken(name: string, token: unknown): void {
  if (Number.isSafeInteger(token)) return
  throw failure('OPTION_INVALID', `lock "${name}": token is ${quote(token)}; it must be the number that acquiring gave`)
}
