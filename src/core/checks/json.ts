import { LIMITS } from '../defaults.js'
import { failure } from '../errors.js'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Every value takes at least two bytes with its comma, so more values than this exceed the size limit. */
const MAX_VALUES = LIMITS.payloadBytes / 2

/** Checks that a value is JSON within the limits, and returns a deep copy. */
export function toJson(value: unknown, what = 'payload'): Json {
  if (value === undefined) return null
  const copy = new Copier(what).copy(value, '', 0) ?? null
  const bytes = Buffer.byteLength(JSON.stringify(copy))
  if (bytes > LIMITS.payloadBytes) throw tooLarge(what, `${bytes} bytes of JSON`)
  return copy
}

/** Copies what `JSON.stringify` would write. Each member is read once, so a getter cannot change what was checked. */
class Copier {
  readonly #what: string
  #values = 0

  constructor(what: string) {
    this.#what = what
  }

  /** Undefined for values that JSON leaves out. */
  copy(value: unknown, path: string, depth: number): Json | undefined {
    this.#values += 1
    if (this.#values > MAX_VALUES) throw tooLarge(this.#what, `more than ${MAX_VALUES} values`)
    if (depth > LIMITS.jsonDepth) throw this.#invalid(path, `nested more than ${LIMITS.jsonDepth} deep`)
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
    if (typeof value === 'number') {
      if (Number.isFinite(value)) return value
      throw this.#invalid(path, `${value} is not a JSON number`)
    }
    if (value === undefined) return undefined
    if (typeof value !== 'object') throw this.#invalid(path, `a ${typeof value} is not JSON`)
    return this.#copyObject(value, path, depth)
  }

  #copyObject(value: object, path: string, depth: number): Json | undefined {
    const { toJSON } = value as { toJSON?: unknown }
    if (typeof toJSON === 'function') return this.copy(toJSON.call(value), path, depth + 1)
    if (Array.isArray(value)) return value.map((item, at) => this.copy(item, `${path}[${at}]`, depth + 1) ?? null)
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== Object.prototype && prototype !== null) {
      throw this.#invalid(path, `${value.constructor?.name ?? 'this object'} is not plain JSON`)
    }
    const copy: Record<string, Json> = {}
    for (const [key, member] of Object.entries(value)) {
      if (key === '__proto__') throw this.#invalid(path, 'the key "__proto__" is refused')
      const copied = this.copy(member, `${path}.${key}`, depth + 1)
      if (copied !== undefined) copy[key] = copied
    }
    return copy
  }

  #invalid(path: string, problem: string) {
    return failure('PAYLOAD_INVALID', `${this.#what}${path}: ${problem}`)
  }
}

function tooLarge(what: string, size: string) {
  return failure(
    'PAYLOAD_INVALID',
    `${what} is ${size}: at most ${LIMITS.payloadBytes} bytes are allowed; store large data elsewhere and pass a reference`,
  )
}

/** The same text for equal values, because object keys are sorted. */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const object = value as { readonly [key: string]: Json }
  const members = Object.keys(object)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key] as Json)}`)
  return `{${members.join(',')}}`
}
