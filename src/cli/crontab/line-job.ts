/** The handler of a line: runs its command through the guard, keeps what it says, and fails when it fails. */
import { writeRunLog } from '../../api/runs/run-log.js'
import type { Belfry } from '../../belfry.js'
import { BelfryError } from '../../core/errors.js'
import type { Json } from '../../core/json.js'
import type { HandlerContext } from '../../engine/definitions.js'
import type { Guard } from '../guard/guard.js'
import type { Program, ProgramEnd } from '../guard/guard-messages.js'
import { took } from '../terminal/human-time.js'

/** Within the time that a handler has to return: one second at the end of the process, five otherwise. */
const GRACE_MS = { stop: 700, other: 4_000 }

export function lineJob(
  belfry: Belfry,
  guard: Guard,
  program: (env: Readonly<Record<string, string>>) => Program,
  say: (words: string) => void,
) {
  return async ({ run, tick, token, signal }: HandlerContext<Json>): Promise<Json> => {
    const startedAt = performance.now()
    const { ended, end } = guard.run(
      program({ BELFRY_RUN: run.id, BELFRY_TICK: tick.toISOString(), BELFRY_RUN_TOKEN: String(token) }),
    )
    const abort = () => end(isStop(signal.reason) ? GRACE_MS.stop : GRACE_MS.other)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    try {
      const result = await ended
      await keepLog(belfry, run.id, run.attempt, result, say)
      const length = took(performance.now() - startedAt)
      if (result.code !== 0) throw new CommandFailed(result, length)
      say(`done in ${length} (run ${run.id})`)
      return { exitCode: 0 }
    } catch (error) {
      say(`failed: ${error instanceof Error ? error.message : String(error)} (run ${run.id})`)
      throw error
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }
}

/** A command that has run has run, whether or not what it said can be kept. */
async function keepLog(
  belfry: Belfry,
  run: string,
  attempt: number,
  { output }: ProgramEnd,
  say: (words: string) => void,
): Promise<void> {
  try {
    await writeRunLog(belfry.records, run, { ...output, attempt })
  } catch (error) {
    say(`the log of run ${run} could not be kept: ${error instanceof Error ? error.message : String(error)}`)
  }
}

class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
  readonly code: string

  constructor({ code, signal, output }: ProgramEnd, length: string) {
    const last = output.text.trimEnd().split('\n').at(-1)?.slice(0, 200) ?? ''
    super(
      `${code === null ? `ended by ${signal}` : `exit code ${code}`} after ${length}${last === '' ? '' : `: ${last}`}`,
    )
    this.code = code === null ? String(signal) : `EXIT_${code}`
    // What people look for is the output, and that is in the log.
    this.stack = ''
  }
}

function isStop(reason: unknown): boolean {
  return reason instanceof BelfryError && reason.code === 'STOPPING'
}
