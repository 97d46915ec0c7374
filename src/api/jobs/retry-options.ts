import { checkOptions } from '../../core/checks/known-options.js'
import { DEFAULTS } from '../../core/defaults.js'
import { failure, quote } from '../../core/errors.js'
import { exponentialBackoff, fixedBackoff, type RetryOptions, type RetryPolicy } from '../../core/runs/retry-policy.js'
import { durationMs } from '../../time/duration.js'

export interface RetryDefaults {
  readonly attempts: number
  readonly maxDelayMs: number
}

const KNOWN = ['attempts', 'backoff', 'delay', 'maxDelay']

/** `where` names the job or sink in errors. */
export function parseRetry(where: string, options: RetryOptions, defaults: RetryDefaults): RetryPolicy {
  checkOptions(options, KNOWN, `${where}: retry`)
  const { attempts = defaults.attempts, backoff = DEFAULTS.retry.backoff, delay, maxDelay } = options
  if (attempts !== Number.POSITIVE_INFINITY && !(Number.isInteger(attempts) && attempts >= 1)) {
    throw invalid(where, `retry.attempts is ${quote(attempts)}; it must be a whole number of at least 1`)
  }
  if (typeof backoff === 'function') {
    if (delay !== undefined || maxDelay !== undefined)
      throw invalid(where, 'retry.backoff is a function, so delay and maxDelay say nothing: remove them')
    return { attempts, delayMs: (failures, error) => durationMs(backoff(failures, error)) }
  }
  const firstMs = delay === undefined ? DEFAULTS.retry.delayMs : durationMs(delay)
  if (backoff === 'fixed') return { attempts, delayMs: fixedBackoff(firstMs) }
  if (backoff !== 'exponential')
    throw invalid(where, `retry.backoff is ${quote(backoff)}; allowed are fixed, exponential or a function`)
  const maxMs = maxDelay === undefined ? defaults.maxDelayMs : durationMs(maxDelay)
  return { attempts, delayMs: exponentialBackoff(firstMs, maxMs) }
}

function invalid(where: string, problem: string) {
  return failure('OPTION_INVALID', `${where}: ${problem}`)
}
