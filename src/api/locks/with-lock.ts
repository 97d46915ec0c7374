import { failure, LockLostError, quote } from '../../core/errors.js'
import type { Lock } from './lock.js'
import type { LockOptions } from './lock-options.js'
import type { Locks } from './locks.js'

/**
 * Holds a lock while `work` runs. The release decides whether the lock was held to the end. The signal cannot: a
 * blocked event loop, or a process that was stopped past the TTL, may finish `work` before a timer can fire it. If
 * `work` throws, `withLock` throws that error, and only the signal, the event and the log report a loss.
 */
export async function withLock<T>(
  locks: Locks,
  name: string,
  work: (lock: Lock) => T | Promise<T>,
  options?: LockOptions,
): Promise<T> {
  if (typeof work !== 'function') {
    throw failure('OPTION_INVALID', `withLock(name, work, options): work is ${quote(work)}; it must be a function`)
  }
  const lock = await locks.acquire(name, options)
  if (lock === undefined) throw failure('LOCK_BUSY', `the lock "${name}" is held by ${await locks.describe(name)}`)
  let value: T
  try {
    value = await work(lock)
  } catch (error) {
    await lock.end()
    throw error
  }
  if (await lock.end()) return value
  throw new LockLostError(
    `the lock "${name}" was lost before its work was done, which may have overlapped the work of another holder: ` +
      'check what it wrote, or repeat it; a longer ttl lasts longer blocks of the event loop',
    value,
    { cause: lock.signal.reason },
  )
}
