export interface Problem {
  readonly status: number
  /** The stable error code. Match on it, not on texts. */
  readonly code: string
  readonly detail: string
  readonly title?: string
  readonly hint?: string
  readonly errors?: readonly { readonly pointer: string; readonly message: string; readonly code?: string }[]
  readonly [member: string]: unknown
}

/**
 * A failed request: the problem that the service returned, or the code `UNREACHABLE` without an answer, or `NOT_BELFRY` with the
 * answer of another program.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: string
  readonly status: number
  readonly problem: Problem

  constructor(problem: Problem, options?: ErrorOptions) {
    super(problem.detail, options)
    this.code = problem.code
    this.status = problem.status
    this.problem = problem
  }
}
