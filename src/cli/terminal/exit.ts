/** Error messages and exit codes of commands. */
import { CommanderError } from 'commander'
import { ServiceError } from '../../client/service-error.js'
import { BelfryError } from '../../core/errors.js'
import { cleanText } from './clean-text.js'

export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  notFound: 3,
  conflict: 4,
  unreachable: 5,
  waitTimedOut: 6,
  drift: 8,
  interrupted: 130,
} as const

export const EXIT_CODES = `0 ok, 1 failure, 2 usage, 3 not found, 4 conflict,
5 unreachable, 6 wait timed out, 8 drift (apply --dry-run)`

/** Exit codes by error code. */
const CODES: Readonly<Record<string, number>> = {
  STORE_UNREACHABLE: EXIT.unreachable,
  UNREACHABLE: EXIT.unreachable,
  NOT_BELFRY: EXIT.unreachable,
  NOT_RUNNING: EXIT.unreachable,
  STOPPING: EXIT.unreachable,
  INTERRUPTED: EXIT.interrupted,
  WAIT_TIMEOUT: EXIT.waitTimedOut,
  SCHEDULE_NOT_FOUND: EXIT.notFound,
  RUN_NOT_FOUND: EXIT.notFound,
  LOCK_NOT_FOUND: EXIT.notFound,
  JOB_UNKNOWN: EXIT.notFound,
  SINK_UNKNOWN: EXIT.notFound,
  NOT_FOUND: EXIT.notFound,
  VERSION_CONFLICT: EXIT.conflict,
  TRANSITION_REFUSED: EXIT.conflict,
  SCHEDULE_DUPLICATE: EXIT.conflict,
  LOCK_BUSY: EXIT.conflict,
  LEASE_LOST: EXIT.conflict,
  STALE: EXIT.conflict,
}

/** Error codes that mean invalid input. */
const USAGE =
  /^(TIMELINE|EXPRESSION|ZONE|DST|DURATION|INTERVAL|INSTANT|INSTANTS|OPTION|NAME|PAYLOAD|BODY|REQUEST|JSON|BATCH)_/

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  if (!(error instanceof BelfryError) && !(error instanceof ServiceError)) return EXIT.failure
  const { code } = error
  if (code in CODES) return CODES[code] ?? EXIT.failure
  return USAGE.test(code) ? EXIT.usage : EXIT.failure
}

export function printError(error: unknown): void {
  process.stderr.write(`belfry: ${cleanText(messageOf(error))}\n`)
}

export function messageOf(error: unknown): string {
  if (error instanceof BelfryError) return error.message
  if (error instanceof ServiceError) {
    const hint = HINTS[error.code] ?? error.problem.hint
    return hint === undefined ? error.message : `${error.message}\n(${hint})`
  }
  if (!(error instanceof Error)) return String(error)
  // An error of the system, such as a full disk, needs no stack.
  return 'syscall' in error ? error.message : (error.stack ?? error.message)
}

/** Hints that name commands. They replace the service's own hints, which name requests. */
const HINTS: Readonly<Record<string, string>> = {
  UNAUTHENTICATED: 'set BELFRY_TOKEN, or pass --token; belfry token create makes one',
  BATCH_TOO_LARGE: 'belfry import takes any number of them as lines',
  BODY_TOO_LARGE: 'belfry import takes any number of schedules as lines; belfry serve --max-body raises the limit',
  SCHEDULE_DUPLICATE: 'belfry put without --if-version replaces it',
}
