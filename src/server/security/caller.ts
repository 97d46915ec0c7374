/** The seam between the routes and authentication. */
import type { Json } from '../../core/checks/json.js'
import { problem } from '../http/problem.js'
import type { Quota } from './quota.js'

export const SERVICE_ROLES = ['viewer', 'operator', 'worker', 'admin'] as const
export type ServiceRole = (typeof SERVICE_ROLES)[number]

/** The routes that each role may call, by the role that a route needs. No route needs `worker` yet. */
const RIGHTS: Readonly<Record<ServiceRole, readonly ServiceRole[]>> = {
  viewer: ['viewer'],
  operator: ['viewer', 'operator'],
  worker: ['worker'],
  admin: ['viewer', 'operator', 'worker', 'admin'],
}

/** The authenticated caller: its role, the ids that it may see and change, and the jobs and sinks that it may use. */
export interface Caller {
  readonly name: string
  readonly role: ServiceRole
  /** If set, only ids that begin with this are visible to the caller. */
  readonly prefix?: string
  /** The jobs that its schedules may name, as texts in which `*` stands for any text. Default: those with the prefix. */
  readonly jobs?: readonly string[]
  /** The sinks that its schedules may name. Default: those with the prefix. */
  readonly sinks?: readonly string[]
  readonly quota?: Quota
}

/** Every caller of a service without login: a program on this machine, which has no limits. */
export const LOCAL: Caller = { name: 'local', role: 'admin' }

/** Facts about the connection that a Fetch request does not carry. */
export interface RequestInfo {
  readonly remoteAddress?: string
  /** Whether the client's connection uses TLS. */
  readonly secure?: boolean
  /** The path under which a router has mounted the server. Default: the option `basePath`. */
  readonly basePath?: string
  /** The whole body, if the HTTP server has read it already. The routes then read this instead of the request's body. */
  readonly body?: Uint8Array
}

/** Authenticates a request, or throws a problem (401, 403, 421, 429). */
export type Authorise = (request: Request, info: RequestInfo) => Caller | Promise<Caller>

/** Adds an entry to the audit trail. */
export type Audit = (caller: Caller, action: string, target: string, detail?: Json) => Promise<void>

/** Throws FORBIDDEN unless the caller has this role, or one that includes it. */
export function mustBe(caller: Caller, role: ServiceRole): void {
  if (RIGHTS[caller.role].includes(role)) return
  throw problem(403, 'FORBIDDEN', `this needs the role ${role}, and "${caller.name}" has the role ${caller.role}`)
}
