import { BelfryError, quote, type TimeErrorCode } from '../time/error.js'

export { BelfryError, quote }

export type ErrorCode =
  | TimeErrorCode
  /** An option is missing, out of range, or contradicts another. */
  | 'OPTION_INVALID'
  /** A schedule, job, lock or app name is empty, too long, or holds control characters. */
  | 'NAME_INVALID'
  /** A payload is not JSON, too large, too deep, or fails the job's schema. */
  | 'PAYLOAD_INVALID'
  | 'JOB_UNKNOWN'
  | 'JOB_DUPLICATE'
  /** A schedule names a sink that no live instance has. */
  | 'SINK_UNKNOWN'
  /** A schedule sets an option of its sink that the sink's owner has not allowed. */
  | 'OVERRIDE_REFUSED'
  /** The address guard does not allow this address of a webhook. */
  | 'ADDRESS_REFUSED'
  | 'SCHEDULE_DUPLICATE'
  | 'SCHEDULE_NOT_FOUND'
  /** A write was based on a version that is no longer the newest. */
  | 'VERSION_CONFLICT'
  /** One call would change more than the limit. */
  | 'BATCH_TOO_LARGE'
  | 'RUN_NOT_FOUND'
  /** A run cannot go from its state to the requested one. */
  | 'TRANSITION_REFUSED'
  /** The attempt's token is no longer the newest: another instance has taken the run over. */
  | 'STALE'
  /** The lease was lost: not renewed in time, taken, reset, or its instance was declared dead. */
  | 'LEASE_LOST'
  /** The lock was not obtained within `wait`. */
  | 'LOCK_BUSY'
  /** The lock of `withLock` was lost before its callback returned. */
  | 'LOCK_LOST'
  | 'TIMEOUT'
  | 'CANCELLED'
  | 'STOPPING'
  /** The module of a handler cannot be loaded, or has no function as its default export. */
  | 'HANDLER_INVALID'
  /** The thread of a handler has died: `process.exit()`, an uncaught error, or no memory left. */
  | 'THREAD_ENDED'
  /** The run was taken over too often: each time its instance died while running it. */
  | 'LOST'
  | 'WAIT_TIMEOUT'
  /** Belfry was stopped, or not started yet. */
  | 'NOT_RUNNING'
  /** Inside `transaction()` the database has rolled back before the callback returned; nothing was committed. */
  | 'TRANSACTION_ABORTED'
  | 'UNSUPPORTED'
  | 'STORE_UNREACHABLE'
  /** The store is damaged, was written by a newer version, or lies where it cannot work, such as a network file system. */
  | 'STORE_INVALID'
  /** The SQLite file was deleted, moved or replaced while it was open. */
  | 'STORE_MOVED'
  | 'STORE_READ_ONLY'
  /** The disk or the memory of the store is full. */
  | 'STORE_FULL'
  | 'SINK_UNREACHABLE'
  /** The broker of a sink did not take a message. */
  | 'SINK_REFUSED'

export function failure(code: ErrorCode, message: string, options?: ErrorOptions): BelfryError<ErrorCode> {
  return new BelfryError(code, message, options)
}

/** The failure of one field of an input. `path` leads to it from the outermost field inwards. */
export function failureAt(path: readonly string[], code: ErrorCode, message: string): BelfryError<ErrorCode> {
  return Object.assign(failure(code, message), { path })
}

/**
 * `withLock` rejects with this when another holder may have had the lock before the callback was done. `value` is the
 * callback's result: its work is done, but may have overlapped the work of another holder.
 */
export class LockLostError extends BelfryError<'LOCK_LOST'> {
  readonly value: unknown

  constructor(message: string, value: unknown, options?: ErrorOptions) {
    super('LOCK_LOST', message, options)
    this.value = value
  }
}

/** A handler that throws this, or any error with `retryable: false`, fails its run without further attempts. */
export class NonRetryableError extends Error {
  override readonly name = 'NonRetryableError'
  readonly retryable = false
}

/** An error as it is stored with a run, cut to a bounded size. */
export interface ErrorRecord {
  readonly message: string
  readonly code?: string
  readonly stack?: string
  /** The beginning of a receiver's answer. It may hold users' data, so only operators see it. */
  readonly excerpt?: string
}

const MAX_MESSAGE = 2_000
const MAX_STACK = 8_000
const MAX_EXCERPT = 256

/** Never throws, although `error` may be anything, such as a proxy or an object whose getters throw. */
export function errorRecord(error: unknown): ErrorRecord {
  const message = textOf(error, 'message') || textOf(error, 'name') || describe(error)
  const code = textOf(error, 'code')
  const stack = textOf(error, 'stack')
  const excerpt = textOf(error, 'excerpt')
  return {
    message: cut(message, MAX_MESSAGE),
    ...(code === '' ? {} : { code: cut(code, 100) }),
    ...(stack === '' ? {} : { stack: cut(stack, MAX_STACK) }),
    ...(excerpt === '' ? {} : { excerpt: cut(excerpt, MAX_EXCERPT) }),
  }
}

/** Whether the error says that it must not be retried. */
export function isFinal(error: unknown): boolean {
  return member(error, 'retryable') === false
}

function textOf(value: unknown, name: string): string {
  const text = member(value, name)
  return typeof text === 'string' ? text : ''
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  try {
    return (value as Record<string, unknown>)[name]
  } catch {
    return undefined
  }
}

function describe(value: unknown): string {
  for (const attempt of [() => (typeof value === 'string' ? value : JSON.stringify(value)), () => String(value)]) {
    try {
      const text: unknown = attempt()
      if (typeof text === 'string' && text !== '') return text
    } catch {
      // The next attempt calls less of the value's own code.
    }
  }
  return 'something was thrown that cannot be described'
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`
}
