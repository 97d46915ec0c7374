/**
 * A route as data: the app, the OpenAPI document and the tests are made from the same table, so none of them can know a
 * route that the others do not.
 */
import type { Context, Handler, Hono } from 'hono'
import type { z } from 'zod'
import type { Belfry } from '../../belfry.js'
import { mustBe, type ServiceRole } from '../security/caller.js'
import type { ParsedServerOptions } from '../server-options.js'
import { hasKey, once } from './idempotency.js'
import { jsonOf, readJson } from './json-body.js'
import { fieldErrors, invalidBody, problem, toProblem } from './problem.js'
import type { Reply } from './reply.js'
import type { ServerEnv } from './server-env.js'

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
export type ServerContext = Context<ServerEnv>

export interface Answer {
  readonly description: string
  /** Absent when there is no body. */
  readonly schema?: z.ZodType
  /** Default `application/json`. */
  readonly type?: string
  /** Headers that it carries, with what they say. */
  readonly headers?: Readonly<Record<string, string>>
}

/** What all routes share. */
export interface Service {
  readonly belfry: Belfry
  readonly options: ParsedServerOptions
}

interface RouteParts {
  readonly method: Method
  /** As OpenAPI writes it: `/v1/schedules/{id}`. A parameter is one percent-encoded segment. */
  readonly path: string
  /** Names the operation for generated clients. */
  readonly id: string
  readonly tag: string
  readonly summary: string
  /** What the caller must be; absent on routes that are open to all. */
  readonly role?: ServiceRole
  /** Request headers that it understands, with what they do. */
  readonly headers?: Readonly<Record<string, string>>
  /** A body that is read as a stream, by its media type, instead of `body`. */
  readonly stream?: { readonly type: string; readonly description: string }
  readonly answers: Readonly<Record<number, Answer>>
  /** Whether it minds an Idempotency-Key. */
  readonly idempotent?: boolean
}

export interface RouteSpec<Query extends z.ZodObject, Body extends z.ZodType> extends RouteParts {
  readonly query?: Query
  readonly body?: Body
  /** Whether the body may be left out. */
  readonly optionalBody?: boolean
  /**
   * Tells bodies of which the library refuses all that the shape would. Those are not checked twice: the shape is asked only
   * when the library has refused one, and says where in it the fault is.
   */
  readonly libraryFirst?: (given: unknown) => boolean
  readonly handle: (c: ServerContext, input: Input<Query, Body>) => Promise<Reply> | Reply
}

export interface Input<Query extends z.ZodObject, Body extends z.ZodType> {
  readonly query: z.output<Query>
  readonly body: z.output<Body>
}

export interface Route extends RouteParts {
  readonly query?: z.ZodObject
  readonly body?: z.ZodType
  readonly optionalBody?: boolean
  readonly answer: (c: ServerContext, service: Service) => Promise<Reply>
}

type NoQuery = z.ZodObject<Record<never, never>>

/** Ties a route's shapes to its handler: what it is given has been checked, or is checked by the library that it asks. */
export function route<Query extends z.ZodObject = NoQuery, Body extends z.ZodType = z.ZodUndefined>(
  spec: RouteSpec<Query, Body>,
): Route {
  const { handle, ...parts } = spec
  const shape: z.ZodType | undefined = spec.body
  const perform = (belfry: Belfry, c: ServerContext, query: z.output<Query>, given: unknown) => {
    const body = given as z.output<Body>
    return spec.idempotent ? once(belfry, c, body, () => handle(c, { query, body })) : handle(c, { query, body })
  }
  return {
    ...parts,
    answer: async (c, { belfry, options }) => {
      if (spec.role !== undefined) mustBe(c.get('caller'), spec.role)
      const query = checkQuery(c, spec.query) as z.output<Query>
      if (shape === undefined) return perform(belfry, c, query, undefined)
      const arriving = givenBody(c, options, spec.optionalBody ?? false)
      const given = arriving instanceof Promise ? await arriving : arriving
      // A body that can never be right takes no key.
      const isLibraryFirst = spec.libraryFirst?.(given) && !(spec.idempotent && hasKey(c))
      if (!isLibraryFirst) return perform(belfry, c, query, checkedBody(given, shape))
      try {
        return await perform(belfry, c, query, given)
      } catch (error) {
        if (toProblem(error).status === 422) checkedBody(given, shape)
        throw error
      }
    },
  }
}

/** Makes a handler of what a route does, or of what is done where there is none. */
export type Mounting = (work: (c: ServerContext) => Promise<Reply>, isOpen?: boolean) => Handler<ServerEnv>

export function mount(app: Hono<ServerEnv>, routes: readonly Route[], service: Service, mounting: Mounting): void {
  for (const one of routes) {
    const handler = mounting((c) => one.answer(c, service), one.role === undefined)
    app.on(one.method.toUpperCase(), honoPath(one.path), handler)
  }
}

/** Answers for paths that there are, asked for by a method that they do not have. */
export function mountRefusals(app: Hono<ServerEnv>, routes: readonly Route[], mounting: Mounting): void {
  const methods = groupByPath(routes)
  for (const [path, those] of methods) {
    const allow = those
      .flatMap(({ method }) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]))
      .join(', ')
    const refuse = async (c: ServerContext) => {
      throw problem(405, 'METHOD_NOT_ALLOWED', `${c.req.method} is not for this path; there are ${allow}`, {
        headers: { allow },
      })
    }
    app.all(honoPath(path), mounting(refuse))
  }
}

function groupByPath(routes: readonly Route[]): Map<string, Route[]> {
  const groups = new Map<string, Route[]>()
  for (const one of routes) groups.set(one.path, [...(groups.get(one.path) ?? []), one])
  return groups
}

export function honoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

function checkQuery(c: ServerContext, shape: z.ZodObject | undefined): unknown {
  const given = c.req.url.includes('?') ? readQuery(c.req.url) : {}
  if (shape === undefined) {
    const [stranger] = Object.keys(given)
    if (stranger !== undefined)
      throw badQuery([{ pointer: stranger.slice(0, 100), message: 'there is no such parameter' }])
    return {}
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

/** A body that is there already is read without waiting for it. */
function givenBody(c: ServerContext, { limits }: ParsedServerOptions, optional: boolean): unknown {
  const { body } = c.env.info
  return body === undefined ? readJson(c.req.raw, limits, optional) : jsonOf(body, c.req.raw, limits, optional)
}

function checkedBody(given: unknown, shape: z.ZodType): unknown {
  const checked = shape.safeParse(given)
  if (checked.success) return checked.data
  throw invalidBody(fieldErrors(checked.error))
}
