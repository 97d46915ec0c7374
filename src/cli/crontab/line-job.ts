/** The handler of a crontab line: runs its command under the supervisor, stores its output, and fails when it fails. */
import { writeRunLog } from '../../api/runs/run-log.js'
import type { Belfry } from '../../belfry.js'
import type { Json } from '../../core/checks/json.js'
import { BelfryError } from '../../core/errors.js'
import type { HandlerContext } from '../../engine/definitions.js'
import type { Supervisor } from '../supervisor/supervisor.js'
import type { Program, ProgramEnd } from '../supervisor/supervisor-messages.js'
import { took } from '../terminal/human-time.js'

/** From SIGTERM to SIGKILL: less than an aborted handler may take, one second when the process stops and five otherwise. */
const GRACE_MS = { stop: 700, other: 4_000 }

export function lineJob(
  belfry: Belfry,
  supervisor: Supervisor,
  program: (env: Readonly<Record<string, string>>) => Program,
  say: (message: string) => void,
) {
  return async ({ run, tick, token, signal }: HandlerContext<Json>): Promise<Json> => {
    const startedAt = performance.now()
    const { ended, end } = supervisor.run(
      program({ BELFRY_RUN: run.id, BELFRY_TICK: tick.toISOString(), BELFRY_RUN_TOKEN: String(token) }),
    )
    const abort = () => end(isStop(signal.reason) ? GRACE_MS.stop : GRACE_MS.other)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    try {
      const result = await ended
      await storeLog(belfry, run.id, run.attempt, result, say)
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

/** A failure to store the log does not fail the run, because the command has run. */
async function storeLog(
  belfry: Belfry,
  run: string,
  attempt: number,
  { output }: ProgramEnd,
  say: (message: string) => void,
): Promise<void> {
  try {
    await writeRunLog(belfry.records, run, { ...output, attempt })
  } catch (error) {
    say(`the log of run ${run} could not be stored: ${error instanceof Error ? error.message : String(error)}`)
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
    // The stack would only name this file, which tells the operator nothing about the command.
    this.stack = ''
  }
}

function isStop(reason: unknown): boolean {
  return reason instanceof BelfryError && reason.code === 'STOPPING'
}
