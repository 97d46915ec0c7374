/**
 * Audit entries that wait to be stored, in order. An entry that differs from the one before only in its target joins it:
 *
 *     put a, put b, put c by "ci"   →   one group { caller: "ci", action: "schedule.put", targets: ["a", "b", "c"] }
 */
import type { Json } from '../../core/checks/json.js'
import type { Caller } from '../security/caller.js'
import { type AuditDeed, type AuditGroup, toDetail } from './audit-entries.js'

/** The maximum of entries in one record. */
export const MOST_TOGETHER = 500
/** The maximum of characters in one record, by the estimates below. */
const MOST_CHARACTERS = 64_000
const MAX_TARGET = 1_000
/** Estimated JSON characters of a group besides its detail and targets. */
const GROUP_CHARACTERS = 100
/** JSON characters around a target's name: two quotes and a comma. */
const TARGET_CHARACTERS = 3

export type AuditArguments = readonly [
  caller: Pick<Caller, 'name' | 'role' | 'prefix'>,
  action: string,
  target: string,
  /** Only entries that share one detail object are grouped: a route that changes many targets passes the same object. */
  detail?: Json,
]

interface Waiting {
  readonly deed: AuditDeed
  /** The detail as the route passed it, before redaction. `isSame` compares it by identity. */
  readonly given: Json | undefined
  readonly targets: string[]
  /** Estimated characters of this group in the record. */
  length: number
}

export class AuditBacklog {
  readonly #waiting: Waiting[] = []

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  add(...[caller, action, target, detail]: AuditArguments): void {
    const name = target.slice(0, MAX_TARGET)
    const length = name.length + TARGET_CHARACTERS
    const last = this.#waiting.at(-1)
    if (last === undefined || !isSame(last, caller, action, detail) || !hasRoom(last, length)) {
      this.#waiting.push(waiting(caller, action, name, detail))
    } else {
      last.targets.push(name)
      last.length += length
    }
  }

  /** Removes and returns the oldest groups, as many as fit into one record. */
  take(): readonly AuditGroup[] {
    let [count, entries, characters] = [0, 0, 0]
    for (const { targets, length } of this.#waiting) {
      entries += targets.length
      characters += length
      if (count > 0 && (entries > MOST_TOGETHER || characters > MOST_CHARACTERS)) break
      count += 1
    }
    return this.#waiting.splice(0, count).map(({ deed, targets }) => ({ ...deed, targets }))
  }
}

function isSame(
  { deed, given }: Waiting,
  { name, role, prefix }: AuditArguments[0],
  action: string,
  detail?: Json,
): boolean {
  const isSameCaller = deed.caller === name && deed.role === role && deed.prefix === prefix
  return isSameCaller && deed.action === action && given === detail
}

function hasRoom({ targets, length }: Waiting, more: number): boolean {
  return targets.length < MOST_TOGETHER && length + more <= MOST_CHARACTERS
}

function waiting({ name, role, prefix }: AuditArguments[0], action: string, target: string, given?: Json): Waiting {
  const deed = { caller: name, role, ...(prefix === undefined ? {} : { prefix }), action }
  const length = GROUP_CHARACTERS + (prefix?.length ?? 0) + target.length + TARGET_CHARACTERS
  if (given === undefined) return { deed, given, targets: [target], length }
  const { detail, length: own } = toDetail(given)
  return { deed: { ...deed, detail }, given, targets: [target], length: length + own }
}
