import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { ServiceError } from '../../client/service-error.js'
import { OVERLAPS, type Overlap } from '../../core/policies.js'
import { type CommandContext, type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { makeRun } from '../operator/enqueued-run.js'
import { missingSchedule } from '../operator/missing.js'

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

async function trigger(context: CommandContext, id: string, { wait, payload, overlap }: TriggerFlags): Promise<void> {
  const { jsonOf } = await import('../settings/data-file.js')
  const { client } = context
  const options = {
    idempotencyKey: randomUUID(),
    ...(payload === undefined ? {} : { payload: jsonOf(payload, '--payload') as null }),
    ...(overlap === undefined ? {} : { overlap }),
  }
  await makeRun(context, id, wait, (patience) =>
    client.schedules.trigger(id, { ...options, ...patience }).catch(async (error: unknown) => {
      const isMissing = error instanceof ServiceError && error.code === 'SCHEDULE_NOT_FOUND'
      throw isMissing ? await missingSchedule(client, id) : error
    }),
  )
}
