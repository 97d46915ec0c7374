import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { located } from '../../api/located.js'
import type { EnqueueOutcome, RunResource } from '../../client/index.js'
import { ServiceError } from '../../client/request.js'
import { failure } from '../../core/errors.js'
import { OVERLAPS, type Overlap } from '../../core/policies.js'
import { missingSchedule } from '../operator/missing.js'
import { type Desk, type Flags, onOperator, operate } from '../operator/on-operator.js'
import { EXIT } from '../terminal/exit.js'

interface TriggerFlags extends Flags {
  readonly wait?: string | true
  readonly payload?: string
  readonly overlap?: Overlap
}

export function triggerCommand(command: Command): void {
  command
    .argument('<id>', 'of the schedule')
    .option('--wait [duration]', 'until it has ended, at most so long')
    .option('--payload <json>', 'instead of its own')
    .addOption(command.createOption('--overlap <policy>', 'mind its unfinished runs (allow)').choices(OVERLAPS))
  onOperator(command)
    .addHelpText(
      'after',
      `
With --wait it exits with 0 when the run succeeded, 1 when it did not, and 6
when it took longer. Its next tick stays what it was.

Examples:
  belfry trigger digest/eu
  belfry trigger digest/eu --wait 5m
  belfry trigger digest/eu --payload '{"region": "us"}' --wait`,
    )
    .action((id: string, flags: TriggerFlags) => operate(flags, (desk) => trigger(desk, id, flags)))
}

async function trigger({ client, out }: Desk, id: string, { wait, payload, overlap }: TriggerFlags): Promise<void> {
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
  mustBeNew(id, enqueued)
  const run = wait === undefined ? enqueued.run : await waitForRun(client, enqueued.runId, untilMs)
  out.one({ ...enqueued, run }, () => (run === null ? [`run ${enqueued.runId}`] : runLines(run, out.style)))
  if (wait !== undefined && !wentWell(run)) process.exitCode = EXIT.failure
}

function mustBeNew(id: string, { outcome, runId }: EnqueueOutcome): void {
  if (outcome === 'enqueued') return
  throw failure('LOCK_BUSY', `"${id}" was not run: its exclusive key is taken by run ${runId}`)
}

/** A run that leaves no history when it succeeds has succeeded. */
function wentWell(run: RunResource | null): boolean {
  return run === null || run.state === 'succeeded'
}
