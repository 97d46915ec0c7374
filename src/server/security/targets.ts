/**
 * Which jobs and sinks a caller may run. `jobs` and `sinks` of a token list them; without a list, the token's prefix applies
 * to their names as it does to ids.
 */
import { failure, quote } from '../../core/errors.js'
import { type Matches, textPatterns } from '../../core/names/text-patterns.js'
import type { Target } from '../../core/runs/run.js'
import { pointerOf, problem } from '../http/problem.js'
import type { Caller } from './caller.js'

export type Allowed = Pick<Caller, 'prefix' | 'jobs' | 'sinks'>

/** The fields of a schedule, or of a patch, that name its target. */
export interface NamesTarget {
  readonly job?: unknown
  readonly to?: unknown
}

const MOST_PATTERNS = 100
const MOST_CHARACTERS = 255
/** How many allowed names an error lists. */
const MOST_SHOWN = 10

/** Whether the caller may use only some jobs or sinks. */
export function isRestricted({ prefix, jobs, sinks }: Allowed): boolean {
  return prefix !== undefined || jobs !== undefined || sinks !== undefined
}

export function mayUse({ prefix, jobs, sinks }: Allowed, target: Target): boolean {
  const [name, list] = 'job' in target ? [target.job, jobs] : [target.sink, sinks]
  if (list !== undefined) return matcherOf(list)(name)
  return prefix === undefined || name.startsWith(prefix)
}

/** The matchers of the lists in use: an import checks each of its lines. */
const matchers = new WeakMap<readonly string[], Matches>()

function matcherOf(list: readonly string[]): Matches {
  const matches = matchers.get(list) ?? textPatterns(list)
  matchers.set(list, matches)
  return matches
}

/** Throws FORBIDDEN for a target that the caller may not use. `path` is where the body names it. */
export function mustUse(caller: Caller, target: Target, path: readonly string[] = []): void {
  if (mayUse(caller, target)) return
  const [what, name, list, field] =
    'job' in target ? ['job', target.job, caller.jobs, 'job'] : ['sink', target.sink, caller.sinks, 'to']
  const shown = list?.slice(0, MOST_SHOWN).map(quote).join(', ')
  const those =
    list === undefined ? `${what}s that begin with ${quote(caller.prefix)}` : `these ${what}s: ${shown || 'none'}`
  const message = `"${caller.name}" may not use the ${what} ${quote(name)}, only ${those}`
  throw problem(403, 'FORBIDDEN', message, {
    errors: [{ pointer: pointerOf([...path, field]), message }],
    hint: `name another ${what}, or use a token that lists this one (belfry token create --${what}s)`,
  })
}

/** Checks the target that a schedule's fields name. Fields that name none, or not in text, are refused later. */
export function mustUseNamed(caller: Caller, { job, to }: NamesTarget, path: readonly string[] = []): void {
  if (typeof job === 'string') mustUse(caller, { job }, path)
  if (typeof to === 'string') mustUse(caller, { sink: to }, path)
}

/** Checks the allow-list of a new token. */
export function checkAllowed(list: unknown, what: 'jobs' | 'sinks'): readonly string[] {
  const isName = (each: unknown) => typeof each === 'string' && each !== '' && each.length <= MOST_CHARACTERS
  if (Array.isArray(list) && list.length <= MOST_PATTERNS && list.every(isName)) return list as readonly string[]
  throw failure(
    'OPTION_INVALID',
    `${what} of a token must be a list of at most ${MOST_PATTERNS} names; "*" stands for any text, as in "mail.*"`,
  )
}
