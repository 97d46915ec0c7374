/**
 * What a caller may see. Everything that leaves the service passes `isVisible`, and the shapes of answers accept only
 * `Visible` things, so no route can leave the check out.
 *
 * A caller with a prefix sees the things whose name begins with it; routes answer as if others did not exist. A thing
 * without a name concerns the whole store, and only callers without a prefix see it.
 */
import type { Json } from '../../core/checks/json.js'
import { BelfryError } from '../../core/errors.js'
import { ownerOf, type Run } from '../../core/runs/run.js'
import { problem } from '../http/problem.js'
import type { ServerContext } from '../http/route.js'
import type { Caller } from './caller.js'
import { isRestricted, mayUse } from './targets.js'

declare const SEEN: unique symbol

/** A thing that the caller of this request may see. Only `isVisible` makes one. */
export type Visible<Thing> = Thing & { readonly [SEEN]: true }

/** The kinds of things that answers hold, each with what decides who may see it. */
interface Things {
  readonly schedule: { readonly id: string }
  readonly run: Pick<Run, 'schedule' | 'target'>
  readonly lease: { readonly name: string }
  readonly job: { readonly name: string }
  readonly audit: {
    readonly action: string
    readonly target: string
    readonly prefix?: string
    readonly detail?: Json
  }
  /** `prefix` is that of the caller that started it. */
  readonly operation: { readonly prefix?: string }
  /** An event of this process. */
  readonly event: object
}

const NAME_OF: { readonly [Kind in keyof Things]: (thing: Things[Kind]) => string | undefined } = {
  schedule: ({ id }) => id,
  run: ownerOf,
  lease: ({ name }) => name,
  job: ({ name }) => name,
  audit: auditName,
  operation: ({ prefix }) => prefix,
  event: (event) => ('name' in event && typeof event.name === 'string' ? event.name : undefined),
}

export function isVisible<Kind extends keyof Things, Thing extends Things[Kind]>(
  caller: Caller,
  kind: Kind,
  thing: Thing,
): thing is Visible<Thing> {
  const name = NAME_OF[kind](thing)
  if (isBelow(caller, name)) return true
  // A job that the caller's schedules may name is no secret.
  return kind === 'job' && name !== undefined && caller.jobs !== undefined && mayUse(caller, { job: name })
}

/** The visible ones of a list. */
export function visible<Kind extends keyof Things, Thing extends Things[Kind]>(
  caller: Caller,
  kind: Kind,
  things: readonly Thing[],
): Visible<Thing>[] {
  return things.filter((thing): thing is Visible<Thing> => isVisible(caller, kind, thing))
}

/** Whether the caller sees everything in the store. */
export function seesAll({ prefix }: Caller): boolean {
  return prefix === undefined
}

/** The error as the caller may see it: without names of things that the caller may not use. */
export function visibleError(caller: Caller | undefined, error: unknown): unknown {
  if (!(error instanceof BelfryError) || error.brief === undefined) return error
  if (caller === undefined || !isRestricted(caller)) return error
  const { code, brief, path } = error
  return Object.assign(new BelfryError(code, brief, { cause: error }), path === undefined ? {} : { path })
}

/** The id in the path. Throws SCHEDULE_NOT_FOUND if the caller may not see it. */
export function visibleId(c: ServerContext): string {
  const id = c.req.param('id') ?? ''
  if (isVisible(c.get('caller'), 'schedule', { id })) return id
  throw problem(404, 'SCHEDULE_NOT_FOUND', `there is no schedule "${id}"`)
}

/** The narrower of the caller's prefix and the requested one; undefined when no id can have both. */
export function visiblePrefix({ prefix: own = '' }: Caller, requested = ''): string | undefined {
  if (requested.startsWith(own)) return requested
  return own.startsWith(requested) ? own : undefined
}

/** Throws FORBIDDEN for a new id outside the caller's prefix. */
export function mayMake(caller: Caller, id: string): void {
  if (isBelow(caller, id)) return
  throw problem(403, 'FORBIDDEN', `"${caller.name}" may only create ids that begin with "${caller.prefix}"`)
}

/** Throws FORBIDDEN for a caller with a prefix, on routes that concern the whole store. */
export function mustSeeAll(caller: Caller): void {
  if (seesAll(caller)) return
  throw problem(
    403,
    'FORBIDDEN',
    `this concerns the whole store, and "${caller.name}" is limited to the prefix "${caller.prefix}"`,
  )
}

/** What decides which things a caller may see and use. */
export function scopeOf({ role, prefix, jobs, sinks }: Caller): Json {
  return { role, prefix: prefix ?? null, jobs: jobs ?? null, sinks: sinks ?? null }
}

function isBelow({ prefix }: Caller, name: string | undefined): boolean {
  return prefix === undefined || name?.startsWith(prefix) === true
}

/** Actions whose target is the name of a schedule, a job or a lock. */
const NAMED_TARGET =
  /^(?:schedule\.(?:put|patch|remove|pause|resume|trigger|backfill)|run\.enqueue|lock\.(?:acquire|release|reset))$/

/**
 * Other actions have many targets, or a target that is no such name: the id of a run or of a token, or `*`. Everything that a
 * caller with a prefix has changed lies below its prefix.
 */
function auditName({ action, target, prefix, detail }: Things['audit']): string | undefined {
  if (NAMED_TARGET.test(action)) return target
  if (action === 'run.cancel' || action === 'run.retry') return ownerIn(detail) ?? prefix
  return prefix
}

function ownerIn(detail: Json | undefined): string | undefined {
  if (typeof detail !== 'object' || detail === null || !('of' in detail)) return undefined
  return typeof detail.of === 'string' ? detail.of : undefined
}
