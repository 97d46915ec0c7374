import { failure } from './errors.js'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

export const MAX_PAYLOAD_BYTES = 256 * 1024
const MAX_DEPTH = 64

/** Checks that a value is JSON and within the limits, and returns a copy that shares nothing with it. */
export function toJson(value: unknown, what = 'payload'): Json {
  if (value === undefined) return null
  const problem = findProblem(value, '', 0)
  if (problem !== undefined) throw failure('PAYLOAD_INVALID', `${what}${problem}`)
  const text = JSON.stringify(value)
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_PAYLOAD_BYTES) {
    throw failure(
      'PAYLOAD_INVALID',
      `${what} is ${bytes} bytes of JSON: at most ${MAX_PAYLOAD_BYTES} are allowed; store large data elsewhere and pass a reference`,
    )
  }
  return JSON.parse(text) as Json
}

function findProblem(value: unknown, path: string, depth: number): string | undefined {
  if (depth > MAX_DEPTH) return `${path}: nested more than ${MAX_DEPTH} deep`
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return undefined
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : `${path}: ${value} is not a JSON number`
  if (Array.isArray(value)) return firstProblem(value.entries(), (at) => `${path}[${at}]`, depth)
  if (typeof value !== 'object') return `${path}: a ${typeof value} is not JSON`
  if (hasToJson(value)) return findProblem(value.toJSON() ?? null, path, depth + 1)
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    return `${path}: ${value.constructor?.name ?? 'this object'} is not plain JSON`
  }
  if (Object.hasOwn(value, '__proto__')) return `${path}: the key "__proto__" is refused`
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return firstProblem(members.values(), (key) => `${path}.${key}`, depth)
}

function hasToJson(value: object): value is { toJSON(): unknown } {
  return typeof (value as { toJSON?: unknown }).toJSON === 'function'
}

function firstProblem<Key>(
  members: Iterable<readonly [Key, unknown]>,
  pathOf: (key: Key) => string,
  depth: number,
): string | undefined {
  for (const [key, member] of members) {
    const problem = findProblem(member, pathOf(key), depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** One text for equal values: object keys sorted, nothing else changed. */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const object = value as { readonly [key: string]: Json }
  const members = Object.keys(object)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key] as Json)}`)
  return `{${members.join(',')}}`
}
