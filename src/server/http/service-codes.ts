import type { ErrorCode } from '../../core/errors.js'
import type { TimeErrorCode } from '../../time/error.js'

/** The library's error codes, and those of the service. */
export type ServiceCode =
  | ErrorCode
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'HOST_REFUSED'
  | 'ORIGIN_REFUSED'
  | 'RATE_LIMITED'
  /** The token may make no more of these. */
  | 'QUOTA_EXCEEDED'
  /** A part of this instance cannot work. */
  | 'NOT_READY'
  /** No route has this path. */
  | 'NOT_FOUND'
  | 'LOCK_NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  /** The path, the query or a header is invalid. */
  | 'REQUEST_INVALID'
  /** The body is not JSON. */
  | 'JSON_INVALID'
  /** The body holds a number that a double cannot hold. */
  | 'NUMBER_INEXACT'
  /** The body is JSON, but does not have the route's shape. */
  | 'BODY_INVALID'
  | 'BODY_TOO_LARGE'
  /** The connection broke off before the whole body had arrived. */
  | 'BODY_INCOMPLETE'
  | 'BODY_TOO_SLOW'
  | 'MEDIA_TYPE_UNSUPPORTED'
  /** The Idempotency-Key was used before with another body. */
  | 'IDEMPOTENCY_MISMATCH'
  /** The first request with this Idempotency-Key is still in flight. */
  | 'IDEMPOTENCY_PENDING'
  | 'INTERNAL'

const TIME: Readonly<Record<TimeErrorCode, 422>> = {
  TIMELINE_INVALID: 422,
  EXPRESSION_TOO_LONG: 422,
  EXPRESSION_SYNTAX: 422,
  EXPRESSION_OUT_OF_RANGE: 422,
  EXPRESSION_NEVER_FIRES: 422,
  EXPRESSION_UNSUPPORTED: 422,
  ZONE_UNKNOWN: 422,
  DST_INVALID: 422,
  DURATION_SYNTAX: 422,
  DURATION_CALENDAR_UNIT: 422,
  DURATION_OUT_OF_RANGE: 422,
  INTERVAL_TOO_SHORT: 422,
  INSTANT_SYNTAX: 422,
  INSTANT_OUT_OF_RANGE: 422,
  INSTANTS_INVALID: 422,
}

/** The status that a code is answered with. */
export const STATUS_OF: Readonly<Record<ServiceCode, number>> = {
  REQUEST_INVALID: 400,
  JSON_INVALID: 400,
  BODY_INCOMPLETE: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  ORIGIN_REFUSED: 403,
  NOT_FOUND: 404,
  SCHEDULE_NOT_FOUND: 404,
  RUN_NOT_FOUND: 404,
  LOCK_NOT_FOUND: 404,
  JOB_UNKNOWN: 404,
  METHOD_NOT_ALLOWED: 405,
  BODY_TOO_SLOW: 408,
  TRANSITION_REFUSED: 409,
  STALE: 409,
  LEASE_LOST: 409,
  LOCK_BUSY: 409,
  SCHEDULE_DUPLICATE: 409,
  QUOTA_EXCEEDED: 409,
  IDEMPOTENCY_PENDING: 409,
  VERSION_CONFLICT: 412,
  BATCH_TOO_LARGE: 413,
  BODY_TOO_LARGE: 413,
  MEDIA_TYPE_UNSUPPORTED: 415,
  HOST_REFUSED: 421,
  ...TIME,
  BODY_INVALID: 422,
  NUMBER_INEXACT: 422,
  IDEMPOTENCY_MISMATCH: 422,
  OPTION_INVALID: 422,
  NAME_INVALID: 422,
  PAYLOAD_INVALID: 422,
  JOB_DUPLICATE: 422,
  SINK_UNKNOWN: 422,
  OVERRIDE_REFUSED: 422,
  ADDRESS_REFUSED: 422,
  LOCK_LOST: 422,
  TIMEOUT: 422,
  CANCELLED: 422,
  HANDLER_INVALID: 422,
  THREAD_ENDED: 422,
  LOST: 422,
  WAIT_TIMEOUT: 422,
  TRANSACTION_ABORTED: 422,
  SINK_UNREACHABLE: 422,
  SINK_REFUSED: 422,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  UNSUPPORTED: 501,
  NOT_READY: 503,
  NOT_RUNNING: 503,
  STOPPING: 503,
  STORE_UNREACHABLE: 503,
  STORE_INVALID: 503,
  STORE_MOVED: 503,
  STORE_READ_ONLY: 503,
  STORE_FULL: 503,
}

export const SERVICE_CODES = Object.keys(STATUS_OF) as ServiceCode[]
