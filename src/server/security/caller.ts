/** The seam between the routes and authentication. */
import type { Json } from '../../core/checks/json.js'
import { problem } from '../http/problem.js'

/** Each role may do what the roles before it may. */
export const SERVICE_ROLES = ['viewer', 'operator', 'admin'] as const
export type ServiceRole = (typeof SERVICE_ROLES)[number]

/** The authenticated caller: its role, and the ids that it may see and change. */
export interface Caller {
  readonly name: string
  readonly role: ServiceRole
  /** If set, only ids that begin with this are visible to the caller. */
  readonly prefix?: string
}

/** Every caller of a service without login: a program on this machine, which has no limits. */
export const LOCAL: Caller = { name: 'local', role: 'admin' }

/** Facts about the connection that a Fetch request does not carry. */
export interface RequestInfo {
  readonly remoteAddress?: string
  /** Whether the client's connection uses TLS. */
  readonly secure?: boolean
  /** The whole body, if the HTTP server has read it already. The routes then read this instead of the request's body. */
  readonly body?: Uint8Array
}

/** Authenticates a request, or throws a problem (401, 403, 421, 429). */
export type Authorise = (request: Request, info: RequestInfo) => Caller | Promise<Caller>

/** Adds an entry to the audit trail. */
export type Audit = (caller: Caller, action: string, target: string, detail?: Json) => Promise<void>

/** Throws FORBIDDEN unless the caller has at least this role. */
export function mustBe(caller: Caller, role: ServiceRole): void {
  if (SERVICE_ROLES.indexOf(caller.role) >= SERVICE_ROLES.indexOf(role)) return
  throw problem(403, 'FORBIDDEN', `this needs the role ${role}, and "${caller.name}" has the role ${caller.role}`)
}

/** Whether an id is visible to the caller. Routes answer as if an invisible id did not exist. */
export function maySee(caller: Caller, id: string): boolean {
  return caller.prefix === undefined || id.startsWith(caller.prefix)
}

/** Throws FORBIDDEN for a new id outside the caller's prefix. */
export function mayMake(caller: Caller, id: string): void {
  if (maySee(caller, id)) return
  throw problem(403, 'FORBIDDEN', `"${caller.name}" may only create ids that begin with "${caller.prefix}"`)
}

/** Throws FORBIDDEN for a caller with a prefix, on routes that concern the whole store. */
export function mustSeeAll(caller: Caller): void {
  if (caller.prefix === undefined) return
  throw problem(
    403,
    'FORBIDDEN',
    `this concerns the whole store, and "${caller.name}" is limited to the prefix "${caller.prefix}"`,
  )
}
