/**
 * A route as data. The app, the OpenAPI document and the tests derive from one table of routes, so a route cannot be missing
 * from one of them.
 */
import type { Context, Handler, Hono } from 'hono'
import type { z } from 'zod'
import type { Belfry } from '../../belfry.js'
import {
  type Audit,
  type Authorise,
  type Caller,
  mustBe,
  type RequestInfo,
  type ServiceRole,
} from '../security/caller.js'
import type { ConcurrencyLimits } from '../security/concurrency-limit.js'
import type { CpuBudget } from '../security/cpu-budget.js'
import type { ImportPace } from '../security/import-pace.js'
import type { ServiceSecret } from '../security/service-secret.js'
import type { Usage } from '../security/usage.js'
import type { ParsedServerOptions } from '../server-options.js'
import { refuseUnsupported } from './conditions.js'
import { once, type Repeatable } from './idempotency.js'
import { parseBody, readBody } from './json-body.js'
import { fieldErrors, problem, validBody } from './problem.js'
import type { Reply } from './reply.js'

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** The values that Hono's context carries through a request. */
export interface ServerEnv {
  readonly Bindings: {
    readonly info: RequestInfo
    /** The path below which the routes are. */
    readonly basePath: string
    readonly audit: Audit
    readonly authorise: Authorise
    readonly concurrency: ConcurrencyLimits
    readonly cpu: CpuBudget
    readonly secret: ServiceSecret
    readonly usage: Usage
    readonly pace: ImportPace
    /** Fires when the server closes. */
    readonly closing: AbortSignal
  }
  readonly Variables: {
    /** Set by the guard on every route that needs a role. */
    caller: Caller
  }
}

export type ServerContext = Context<ServerEnv>

export interface Answer {
  readonly description: string
  /** Absent when the answer has no body. */
  readonly schema?: z.ZodType
  /** Default `application/json`. */
  readonly type?: string
  /** Response headers by name, each with its description. */
  readonly headers?: Readonly<Record<string, string>>
  /** The shape of a line or an event, for answers that are streams of them. */
  readonly line?: z.ZodType
  /** Operations that take a part of this answer, by name. */
  readonly links?: Readonly<Record<string, Link>>
}

/** Another operation, and its parameters as runtime expressions, such as `$response.body#/id`. */
export interface Link {
  readonly operationId: string
  readonly parameters: Readonly<Record<string, string>>
}

/** The Belfry and the options that all routes share. */
export interface Service {
  readonly belfry: Belfry
  readonly options: ParsedServerOptions
}

export interface RouteParts {
  readonly method: Method
  /** As OpenAPI writes it: `/v1/schedules/{id}`. A parameter is one percent-encoded segment. */
  readonly path: string
  /** The operation's id, which names it in generated clients. */
  readonly id: string
  readonly tag: string
  readonly summary: string
  /** The lowest role that may call it; absent on routes without authentication. */
  readonly role?: ServiceRole
  /** Request headers by name, each with its description. */
  readonly headers?: Readonly<Record<string, string>>
  /** The media type of a body that is read as a stream, instead of `body`. */
  readonly stream?: { readonly type: string; readonly description: string; readonly line: z.ZodType }
  readonly answers: Readonly<Record<number, Answer>>
  /** Statuses with which it refuses requests, besides those that its parts imply. */
  readonly refuses?: readonly number[]
  /** Whether the route supports Idempotency-Key. */
  readonly idempotent?: boolean
}

export interface RouteSpec<Query extends z.ZodObject, Body extends z.ZodType> extends RouteParts {
  readonly query?: Query
  readonly body?: Body
  /** Whether the body may be absent. */
  readonly optionalBody?: boolean
  /** The largest body in bytes, if it is smaller than the service's limit. */
  readonly bodyBytes?: number
  /** Checks a body that is too large to be checked in one go. Default: `body` checks it. */
  readonly check?: (given: unknown, limits: ParsedServerOptions['limits']) => Promise<z.output<Body>>
  readonly handle: (c: ServerContext, input: Input<Query, Body>) => Promise<Reply> | Reply
}

export interface Input<Query extends z.ZodObject, Body extends z.ZodType> {
  readonly query: z.output<Query>
  readonly body: z.output<Body>
  /** Present on an idempotent route when the request has an Idempotency-Key. */
  readonly repeatable?: Repeatable | undefined
}

export interface Route extends RouteParts {
  readonly query?: z.ZodObject
  readonly body?: z.ZodType
  readonly optionalBody?: boolean
  readonly answer: (c: ServerContext, service: Service) => Promise<Reply>
}

type NoQuery = z.ZodObject<Record<never, never>>

/** Joins a handler with its shapes: the role, the query and the body are checked before `handle` is called. */
export function route<Query extends z.ZodObject = NoQuery, Body extends z.ZodType = z.ZodUndefined>(
  spec: RouteSpec<Query, Body>,
): Route {
  const { handle, ...parts } = spec
  return {
    ...parts,
    answer: async (c, { belfry, options }) => {
      if (spec.role !== undefined) mustBe(c.get('caller'), spec.role)
      refuseUnsupported(c, spec)
      const query = checkQuery(c, spec.query) as z.output<Query>
      const body = (await checkBody(c, options, spec)) as z.output<Body>
      const perform = async (repeatable?: Repeatable) => handle(c, { query, body, repeatable })
      return spec.idempotent ? once(belfry, c, body, perform) : perform()
    },
  }
}

/** Turns a route's work into a Hono handler. An open route needs no authentication. */
export type ToHandler = (work: (c: ServerContext) => Promise<Reply>, isOpen?: boolean) => Handler<ServerEnv>

export function mount(app: Hono<ServerEnv>, routes: readonly Route[], service: Service, toHandler: ToHandler): void {
  for (const one of routes) {
    const handler = toHandler((c) => one.answer(c, service), one.role === undefined)
    app.on(one.method.toUpperCase(), honoPath(one.path), handler)
  }
  mountMethodRefusals(app, routes, toHandler)
}

/** Answers 405 for every other method on a known path. Hono picks the first match, so these come after the routes. */
function mountMethodRefusals(app: Hono<ServerEnv>, routes: readonly Route[], toHandler: ToHandler): void {
  for (const path of new Set(routes.map((one) => one.path))) {
    const methods = routes.filter((one) => one.path === path).map(({ method }) => method)
    const allow = methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()])).join(', ')
    const refuse = async (c: ServerContext) => {
      throw problem(405, 'METHOD_NOT_ALLOWED', `${c.req.method} is not allowed on this path: use ${allow}`, {
        headers: { allow },
      })
    }
    app.all(honoPath(path), toHandler(refuse))
  }
}

function honoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

function checkQuery(c: ServerContext, shape: z.ZodObject | undefined): unknown {
  const given = readQuery(c.req.url)
  if (shape === undefined) {
    const [unknown] = Object.keys(given)
    if (unknown === undefined) return {}
    throw badQuery([{ pointer: unknown.slice(0, 100), message: 'there is no such parameter' }])
  }
  const checked = shape.safeParse({ ...given })
  if (checked.success) return checked.data
  throw badQuery(fieldErrors(checked.error).map(({ pointer, message }) => ({ pointer: pointer.slice(1), message })))
}

function readQuery(url: string): Record<string, string> {
  const given: Record<string, string> = Object.create(null)
  for (const [name, value] of new URL(url).searchParams) {
    if (name in given) throw badQuery([{ pointer: name.slice(0, 100), message: 'it is given twice' }])
    given[name] = value
  }
  return given
}

function badQuery(errors: { readonly pointer: string; readonly message: string }[]) {
  const detail = errors.map(({ pointer, message }) => `${pointer}: ${message}`).join('; ')
  return problem(400, 'REQUEST_INVALID', `the query is not valid: ${detail}`, { errors })
}

type BodySpec = Pick<RouteSpec<z.ZodObject, z.ZodType>, 'body' | 'optionalBody' | 'bodyBytes' | 'check'>

async function checkBody(
  c: ServerContext,
  { limits }: ParsedServerOptions,
  { body: shape, optionalBody = false, bodyBytes = limits.bodyBytes, check }: BodySpec,
): Promise<unknown> {
  if (shape === undefined) return undefined
  const most = { ...limits, bodyBytes: Math.min(bodyBytes, limits.bodyBytes) }
  const text = await readBody(c.req.raw, c.env.info, most)
  const { cpu } = c.env
  const caller: Caller | undefined = c.get('caller')
  const measured = <Result>(work: () => Result) => (caller === undefined ? work() : cpu.measured(caller, work))
  const given = measured(() => parseBody(c.req.raw, text, most, optionalBody))
  if (check !== undefined) return check(given, limits)
  return validBody(measured(() => shape.safeParse(given)))
}
