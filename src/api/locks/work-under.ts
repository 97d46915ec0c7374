import { LockLostError } from '../../core/errors.js'
import type { Lock } from './lock.js'

/**
 * Does the work of `withLock`. Only the release tells for certain whether the lock was held to the end: an event loop that was
 * blocked, or a process that was stopped past the TTL, finishes its work before any timer can fire the signal. An error of
 * the work itself comes first; the loss is then told by the signal, the event and the log alone.
 */
export async function workUnder<Value>(lock: Lock, work: (lock: Lock) => Value | Promise<Value>): Promise<Value> {
  let value: Value
  try {
    value = await work(lock)
  } catch (error) {
    await lock.end()
    throw error
  }
  if (await lock.end()) return value
  throw new LockLostError(
    `the lock "${lock.name}" was lost before its work was done, which may have overlapped the work of another holder: ` +
      'check what it wrote, or repeat it; a longer ttl lasts longer blocks of the event loop',
    value,
    { cause: lock.signal.reason },
  )
}
