/** A copy of a client's options that can be sent to another thread. */
export interface CopiedData {
  readonly value: unknown
  /** Paths of values that cannot be copied, such as functions: `ssl.checkServerIdentity`. */
  readonly strange: readonly string[]
}

/**
 * Copies plain objects and lists member by member, except members that `without` names. Members that are not enumerable
 * are copied too: clients hide passwords that way.
 */
export function copyData(value: unknown, without: ReadonlySet<string>): CopiedData {
  const strange: string[] = []
  return { value: copied(value, '', without, strange), strange }
}

function copied(value: unknown, at: string, without: ReadonlySet<string>, strange: string[]): unknown {
  if (Array.isArray(value)) return value.map((each, place) => copied(each, `${at}[${place}]`, without, strange))
  if (!isPlain(value)) return cloned(value, at, strange)
  const copy: Record<string, unknown> = {}
  for (const name of Object.getOwnPropertyNames(value)) {
    if (!without.has(name)) copy[name] = copied(value[name], at === '' ? name : `${at}.${name}`, without, strange)
  }
  return copy
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

function cloned(value: unknown, at: string, strange: string[]): unknown {
  try {
    return structuredClone(value)
  } catch {
    strange.push(at)
    return undefined
  }
}
