/**
 * Changes that wait to be written down, in the order in which they were made. What is the same as the one before it but for
 * its target joins it; and no record is made of so many that it could not be read with ease.
 */
import type { Json } from '../../core/json.js'
import type { Caller } from '../security/caller.js'
import { redacted } from '../security/redacted.js'
import type { AuditDeed, AuditGroup } from './audit-entries.js'

/** How many entries share a record at the most, and of about how many characters. */
export const MOST_TOGETHER = 500
const MOST_CHARACTERS = 64_000
const MAX_TARGET = 1_000
const MAX_DETAIL = 4_096
/** What a deed takes besides its detail, and a target besides its name. */
const DEED_CHARACTERS = 100
const TARGET_CHARACTERS = 3

export type AuditArguments = readonly [
  caller: Pick<Caller, 'name' | 'role'>,
  action: string,
  target: string,
  /** Whoever does the same to many shows the same object each time: it is then known for the same, and said once. */
  detail?: Json,
]

interface Waiting {
  readonly deed: AuditDeed
  /** The detail as it was given. */
  readonly given: Json | undefined
  readonly targets: string[]
  /** About how many characters it takes to write it down. */
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

  /** As many as fit into a record; they wait no more. */
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

function isSame({ deed, given }: Waiting, { name, role }: AuditArguments[0], action: string, detail?: Json): boolean {
  return deed.caller === name && deed.role === role && deed.action === action && given === detail
}

function hasRoom({ targets, length }: Waiting, more: number): boolean {
  return targets.length < MOST_TOGETHER && length + more <= MOST_CHARACTERS
}

function waiting({ name, role }: AuditArguments[0], action: string, target: string, given?: Json): Waiting {
  const deed = { caller: name, role, action }
  const length = DEED_CHARACTERS + target.length + TARGET_CHARACTERS
  if (given === undefined) return { deed, given, targets: [target], length }
  const { kept: detail, length: own } = bounded(redacted(given))
  return { deed: { ...deed, detail }, given, targets: [target], length: length + own }
}

/** What is kept of a detail, and about how long it is when it is written down. */
function bounded(detail: Json): { readonly kept: Json; readonly length: number } {
  const text = JSON.stringify(detail)
  const kept = text.length <= MAX_DETAIL ? detail : { cut: text.slice(0, MAX_DETAIL) }
  return { kept, length: Math.min(text.length, MAX_DETAIL) }
}
