/** Errors as problem+json (RFC 9457): a stable code, a JSON pointer for each invalid field, and a hint. */
import type { z } from 'zod'
import { BelfryError } from '../../core/errors.js'
import { json, type Reply, toResponse } from './reply.js'
import { type ServiceCode, STATUS_OF } from './service-codes.js'

export type { ServiceCode } from './service-codes.js'

export interface FieldError {
  /** JSON pointer into the body, or the name of a query parameter or header. */
  readonly pointer: string
  readonly message: string
  /** The library's error code, if one of its parsers refused the field. */
  readonly code?: string
}

export interface ProblemOptions extends ErrorOptions {
  readonly hint?: string
  readonly errors?: readonly FieldError[]
  readonly headers?: Readonly<Record<string, string>>
  /** More members of the problem document. */
  readonly members?: Readonly<Record<string, unknown>>
}

export class Problem extends BelfryError<ServiceCode> {
  readonly status: number
  readonly options: ProblemOptions

  constructor(status: number, code: ServiceCode, detail: string, options: ProblemOptions = {}) {
    super(code, detail, options)
    this.status = status
    this.options = options
  }
}

export function problem(status: number, code: ServiceCode, detail: string, options?: ProblemOptions): Problem {
  return new Problem(status, code, detail, options)
}

const RETRY_SOON = { 'retry-after': '1' }

/** Any thrown value as a problem. An unexpected error becomes INTERNAL, and its message stays private. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (!(error instanceof BelfryError)) {
    return problem(500, 'INTERNAL', 'an unexpected error in the service', { cause: error })
  }
  const code = error.code as ServiceCode
  const status = STATUS_OF[code] ?? 422
  const headers = status === 503 ? { headers: RETRY_SOON } : {}
  const errors =
    status === 422 ? { errors: [{ pointer: pointerOf(error.path ?? []), message: error.message, code }] } : {}
  return problem(status, code, error.message, { cause: error, ...headers, ...errors })
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad request',
  401: 'Not authenticated',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Method not allowed',
  408: 'Too slow',
  409: 'Conflict',
  412: 'Precondition failed',
  413: 'Too large',
  415: 'Unsupported media type',
  421: 'Misdirected request',
  422: 'Invalid',
  428: 'Precondition required',
  429: 'Too many requests',
  500: 'Internal error',
  501: 'Not supported',
  503: 'Not available',
}

export function problemReply(found: Problem, instance?: string, requestId?: string): Reply {
  const { status, code, message, options } = found
  const { hint, errors, headers, members } = options
  const body = {
    type: `urn:belfry:problem:${code.toLowerCase().replaceAll('_', '-')}`,
    title: TITLES[status] ?? 'Problem',
    status,
    code,
    detail: message,
    ...(hint === undefined ? {} : { hint }),
    ...(errors === undefined ? {} : { errors }),
    ...(instance === undefined ? {} : { instance }),
    ...(requestId === undefined ? {} : { requestId }),
    ...members,
  }
  return json(body, status, { 'content-type': 'application/problem+json', ...headers })
}

/** For problems that arise outside of a route. */
export function problemResponse(found: Problem): Response {
  return toResponse(problemReply(found))
}

const MAX_ERRORS = 50

/** Converts zod issues to field errors. */
export function fieldErrors(error: z.ZodError, base: readonly PropertyKey[] = []): FieldError[] {
  return error.issues
    .flatMap(innerIssues)
    .slice(0, MAX_ERRORS)
    .flatMap((issue): FieldError[] => {
      const path = [...base, ...issue.path]
      if (issue.code !== 'unrecognized_keys') {
        const code: unknown = issue.code === 'custom' ? issue.params?.code : undefined
        const known = typeof code === 'string' ? { code } : {}
        return [{ pointer: pointerOf(path), message: cut(issue.message), ...known }]
      }
      return issue.keys.slice(0, MAX_ERRORS).map((key) => ({
        pointer: pointerOf([...path, key]),
        message: 'there is no such field',
      }))
    })
}

/** The issues of the option of a union that the value was meant for, and those of a key; else the issue itself. */
function innerIssues(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  const below = (inner: z.core.$ZodIssue) => ({ ...inner, path: [...issue.path, ...inner.path] })
  if (issue.code === 'invalid_key') return issue.issues.map(below)
  if (issue.code !== 'invalid_union') return [issue]
  const meant = issue.errors.filter((issues) => !issues.some(isOfAnotherType))
  return meant.length === 1 ? (meant[0] ?? []).map(below).flatMap(innerIssues) : [issue]
}

function isOfAnotherType({ code, path }: z.core.$ZodIssue): boolean {
  return path.length === 0 && (code === 'invalid_type' || code === 'invalid_union' || code === 'invalid_value')
}

/** The value of a successful check; else throws the problem of a body with invalid fields. */
export function validBody<Body>(checked: z.ZodSafeParseResult<Body>): Body {
  if (checked.success) return checked.data
  throw invalidBody(fieldErrors(checked.error))
}

/** The problem of a body with invalid fields. With a single error its own code is used, else BODY_INVALID. */
export function invalidBody(errors: readonly FieldError[]): Problem {
  const detail = errors.map(({ pointer, message }) => `${pointer === '' ? 'the body' : pointer}: ${message}`).join('; ')
  const [only] = errors
  const code = errors.length === 1 && only?.code !== undefined ? (only.code as ServiceCode) : 'BODY_INVALID'
  return problem(422, code, detail, { errors })
}

/** A JSON pointer (RFC 6901). */
export function pointerOf(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${cut(String(part)).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

function cut(text: string): string {
  return text.length <= 300 ? text : `${text.slice(0, 299)}…`
}
