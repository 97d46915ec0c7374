import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { located } from '../../api/located.js'
import type { EnqueueOutcome, RunResource } from '../../client/index.js'
import { ServiceError } from '../../client/request.js'
import { failure } from '../../core/errors.js'
import { OVERLAPS, type Overlap } from '../../core/policies.js'
import { type CommandContext, type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { missingSchedule } from '../operator/missing.js'
import { EXIT } from '../terminal/exit.js'

interface TriggerFlags extends Flags {
  readonly wait?: string | true
  readonly payload?: string
  readonly overlap?: Overlap
}

export function triggerCommand(command: Command): void {
  command
    .argument('<id>', 'id of the schedule')
    .option('--wait [duration]', 'wait until the run has ended, at most this long')
    .option('--payload <json>', 'instead of the schedule’s own')
    .addOption(command.createOption('--overlap <policy>', 'policy with its unfinished runs (allow)').choices(OVERLAPS))
  withClientOptions(command)
    .addHelpText(
      'after',
      `
With --wait it exits with 0 if the run succeeded, 1 if it did not, and 6 if it
took longer. The schedule's next tick does not change.

Examples:
  belfry trigger digest/eu
  belfry trigger digest/eu --wait 5m
  belfry trigger digest/eu --payload '{"region": "us"}' --wait`,
    )
    .action((id: string, flags: TriggerFlags) => withClient(flags, (context) => trigger(context, id, flags)))
}

async function trigger(
  { client, out }: CommandContext,
  id: string,
  { wait, payload, overlap }: TriggerFlags,
): Promise<void> {
  const { jsonOf } = await import('../settings/data-file.js')
  const { waitForRun, waitMs, ONE_WAIT_MS } = await import('../operator/wait-for-run.js')
  const { runLines } = await import('../terminal/run-text.js')
  const patienceMs = wait === undefined ? 0 : located('--wait', () => waitMs(wait))
  const untilMs = performance.now() + patienceMs
  const enqueued = await client.schedules
    .trigger(id, {
      idempotencyKey: randomUUID(),
      ...(payload === undefined ? {} : { payload: jsonOf(payload, '--payload') as null }),
      ...(overlap === undefined ? {} : { overlap }),
      ...(patienceMs === 0 ? {} : { wait: Math.min(patienceMs, ONE_WAIT_MS) }),
    })
    .catch(async (error: unknown) => {
      const isMissing = error instanceof ServiceError && error.code === 'SCHEDULE_NOT_FOUND'
      throw isMissing ? await missingSchedule(client, id) : error
    })
  const runId = newRunOf(id, enqueued)
  const run = wait === undefined ? enqueued.run : await waitForRun(client, runId, untilMs)
  out.one({ ...enqueued, run }, () => (run === null ? [`run ${runId}`] : runLines(run, out.style)))
  if (wait !== undefined && !hasSucceeded(run)) process.exitCode = EXIT.failure
}

function newRunOf(id: string, { outcome, runId }: EnqueueOutcome): string {
  if (outcome === 'enqueued' && runId !== null) return runId
  throw failure(
    'LOCK_BUSY',
    `"${id}" was not run: ${runId === null ? 'another run' : `run ${runId}`} holds its exclusive key`,
  )
}

/** A run whose history is not kept counts as succeeded. */
function hasSucceeded(run: RunResource | null): boolean {
  return run === null || run.state === 'succeeded'
}
