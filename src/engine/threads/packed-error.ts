/**
 * Sends errors between threads. A structured clone loses an error's `code` and other own properties, and refuses values that
 * hold a function. So one thread packs an error into plain data, and the other unpacks it. Example: `Object.assign(new
 * Error('no'), { code: 'E1', retryable: false })` arrives with its message, stack, `code` and `retryable`.
 */
import { isNativeError } from 'node:util/types'

export type PackedError =
  | { readonly kind: 'value'; readonly value: unknown }
  | {
      readonly kind: 'error'
      readonly name: string
      readonly message: string
      readonly stack: string | undefined
      /** Own properties such as `code` and `retryable`, without those that cannot be sent. */
      readonly own: Readonly<Record<string, unknown>>
      readonly cause: PackedError | undefined
    }

/** How many nested causes are kept; cyclic causes end here too. */
const MAX_DEPTH = 5

/** Never throws. */
export function packError(error: unknown, depth = 0): PackedError {
  if (!isNativeError(error)) return { kind: 'value', value: sendable(error) }
  const { cause } = error
  return {
    kind: 'error',
    name: text(() => error.name),
    message: text(() => error.message),
    stack: text(() => error.stack),
    own: ownOf(error),
    cause: cause === undefined || depth === MAX_DEPTH ? undefined : packError(cause, depth + 1),
  }
}

export function unpackError(packed: PackedError): unknown {
  if (packed.kind === 'value') return packed.value
  const { name, message, stack, own, cause } = packed
  const error = new Error(message, cause === undefined ? undefined : { cause: unpackError(cause) })
  const hidden = { writable: true, configurable: true, enumerable: false }
  Object.defineProperty(error, 'name', { ...hidden, value: name })
  Object.defineProperty(error, 'stack', { ...hidden, value: stack })
  return Object.assign(error, own)
}

function ownOf(error: Error): Record<string, unknown> {
  const own: Record<string, unknown> = {}
  for (const key of Object.keys(error)) {
    if (key === 'name' || key === 'cause') continue
    const value = sendable(read(error, key))
    if (value !== undefined) own[key] = value
  }
  return own
}

/** The value, or its text if it cannot be cloned. */
function sendable(value: unknown): unknown {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function' && typeof value !== 'symbol')) {
    return value
  }
  try {
    return structuredClone(value)
  } catch {
    return typeof value === 'function' ? undefined : text(() => String(value))
  }
}

function read(error: Error, key: string): unknown {
  try {
    return (error as unknown as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}

function text(read: () => unknown): string {
  try {
    const value = read()
    return typeof value === 'string' ? value : ''
  } catch {
    return ''
  }
}
