/** The seam between the routes and whoever decides who asks. */
import type { Json } from '../../core/json.js'
import { problem } from '../http/problem.js'

export type ServiceRole = 'viewer' | 'operator' | 'admin'

/** Who asks, and what they may see and touch. */
export interface Caller {
  readonly name: string
  readonly role: ServiceRole
  /** Only ids that begin with this. */
  readonly prefix?: string
}

/** What is known of a request besides itself. */
export interface RequestInfo {
  readonly remoteAddress?: string
  readonly secure?: boolean
  /** The whole body, where whoever calls has read it already: then the request's own is not looked at. */
  readonly body?: Uint8Array
}

/** Decides who asks, or throws a problem (401, 403, 421, 429). */
export type Authorise = (request: Request, info: RequestInfo) => Caller | Promise<Caller>

/** Writes down who changed what. */
export type Audit = (caller: Caller, action: string, target: string, detail?: Json) => Promise<void>

const RANKS: Readonly<Record<ServiceRole, number>> = { viewer: 0, operator: 1, admin: 2 }

/** Throws FORBIDDEN unless the caller has at least this role. */
export function mustBe(caller: Caller, role: ServiceRole): void {
  if (RANKS[caller.role] >= RANKS[role]) return
  throw problem(403, 'FORBIDDEN', `this needs the role ${role}, and "${caller.name}" is ${caller.role}`)
}

/** Whether an id lies within the caller's prefix; outside it, it is as if it were not there. */
export function maySee(caller: Caller, id: string): boolean {
  return caller.prefix === undefined || id.startsWith(caller.prefix)
}

/** Throws FORBIDDEN for a new id outside the caller's prefix. */
export function mayMake(caller: Caller, id: string): void {
  if (maySee(caller, id)) return
  throw problem(403, 'FORBIDDEN', `"${caller.name}" may only make ids that begin with "${caller.prefix}"`)
}

/** Throws FORBIDDEN for those who see a part of the store, where the whole of it is meant. */
export function mustSeeAll(caller: Caller): void {
  if (caller.prefix === undefined) return
  throw problem(403, 'FORBIDDEN', `this concerns the whole store, and "${caller.name}" sees "${caller.prefix}" alone`)
}
