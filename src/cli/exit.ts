/** How the command ends: errors as one line that says what to do, and an exit code that a script can rely on. */
import { CommanderError } from 'commander'
import { BelfryError } from '../core/errors.js'

export const EXIT = { ok: 0, failure: 1, usage: 2, unreachable: 5 } as const

/** Codes of mistakes in what was typed. */
const USAGE = /^(TIMELINE|EXPRESSION|ZONE|DST|DURATION|INTERVAL|INSTANT|INSTANTS|OPTION|NAME|PAYLOAD)_/

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  if (!(error instanceof BelfryError)) return EXIT.failure
  if (error.code === 'STORE_UNREACHABLE') return EXIT.unreachable
  return USAGE.test(error.code) ? EXIT.usage : EXIT.failure
}

export function printError(error: unknown): void {
  const text =
    error instanceof BelfryError
      ? error.message
      : error instanceof Error
        ? (error.stack ?? error.message)
        : String(error)
  process.stderr.write(`belfry: ${text}\n`)
}
