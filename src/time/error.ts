/**
 * The error class of the project. `core/errors.ts` has two more for special cases, and lists the codes of the layers
 * above. This class is defined in `time/`, which imports nothing of the project, so that `time/` can throw it.
 *
 * Match on `code`, never on the message: codes are part of the API, messages are not.
 */
export class BelfryError<Code extends string = string> extends Error {
  override readonly name = 'BelfryError'
  readonly code: Code
  /** The path of the wrong field in the input, from the outermost field inwards. */
  declare path?: readonly string[]
  /** The message without names that the caller of a service may not see. Absent when the message holds none. */
  declare brief?: string

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export type TimeErrorCode =
  | 'TIMELINE_INVALID'
  | 'EXPRESSION_TOO_LONG'
  | 'EXPRESSION_SYNTAX'
  | 'EXPRESSION_OUT_OF_RANGE'
  | 'EXPRESSION_NEVER_FIRES'
  | 'EXPRESSION_UNSUPPORTED'
  | 'ZONE_UNKNOWN'
  | 'DST_INVALID'
  | 'DURATION_SYNTAX'
  | 'DURATION_CALENDAR_UNIT'
  | 'DURATION_OUT_OF_RANGE'
  | 'INTERVAL_TOO_SHORT'
  | 'INSTANT_SYNTAX'
  | 'INSTANT_OUT_OF_RANGE'
  | 'INSTANTS_INVALID'

export function timeError(code: TimeErrorCode, message: string, options?: ErrorOptions): BelfryError<TimeErrorCode> {
  return new BelfryError(code, message, options)
}

/** A user's value for a message: quoted, and cut, so that a long value cannot flood a log. */
export function quote(value: unknown): string {
  const text = typeof value === 'string' ? value : textOf(value)
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}…` : text)
}

/** `String(value)` throws for an object from JSON with a member `toString`. */
function textOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    return typeof value
  }
}
