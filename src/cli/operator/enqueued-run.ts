/** Commands that make one run and may wait for its end: `trigger` and `enqueue`. */
import { located } from '../../api/located.js'
import type { EnqueueOutcome, RunResource } from '../../client/index.js'
import { failure } from '../../core/errors.js'
import { durationText } from '../../time/duration.js'
import { EXIT } from '../terminal/exit.js'
import type { CommandContext } from './client-options.js'

/** What `--wait` was given: nothing, no duration, or a duration. */
type WaitFlag = string | true | undefined

/**
 * Makes a run, waits for its end if asked to, and shows it. `make` gets the part of the time that one request may wait. The
 * exit code says whether a run that was waited for succeeded.
 */
export async function makeRun(
  { client, out }: CommandContext,
  what: string,
  wait: WaitFlag,
  make: (wait: { readonly wait?: string }) => Promise<EnqueueOutcome>,
): Promise<void> {
  const { waitForRun, waitMs, ONE_WAIT_MS } = await import('./wait-for-run.js')
  const { runLines } = await import('../terminal/run-text.js')
  const patienceMs = wait === undefined ? 0 : located('--wait', () => waitMs(wait))
  const untilMs = performance.now() + patienceMs
  const enqueued = await make(patienceMs === 0 ? {} : { wait: durationText(Math.min(patienceMs, ONE_WAIT_MS)) })
  const runId = newRunOf(what, enqueued)
  const run = wait === undefined ? enqueued.run : await waitForRun(client, runId, untilMs)
  out.one({ ...enqueued, run }, () => (run === null ? [`run ${runId}`] : runLines(run, out.style)))
  if (wait !== undefined && !hasSucceeded(run)) process.exitCode = EXIT.failure
}

function newRunOf(what: string, { outcome, runId }: EnqueueOutcome): string {
  if (outcome === 'enqueued' && runId !== null) return runId
  const other = runId === null ? 'another run' : `run ${runId}`
  const why = outcome === 'duplicate' ? `${other} has this --key` : `${other} holds its exclusive key`
  throw failure('LOCK_BUSY', `"${what}" was not run: ${why}`)
}

/** A run whose history is not kept counts as succeeded. */
function hasSucceeded(run: RunResource | null): boolean {
  return run === null || run.state === 'succeeded'
}
