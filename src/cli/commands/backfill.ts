import type { Command } from 'commander'
import { ServiceError } from '../../client/service-error.js'
import { OVERLAPS, type Overlap } from '../../core/policies.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { missingSchedule } from '../operator/missing.js'
import { watched } from '../operator/operation.js'

interface BackfillFlags extends Flags {
  readonly from: string
  readonly to: string
  readonly name?: string
  readonly overlap?: Overlap
}

export function backfillCommand(command: Command): void {
  command
    .argument('<id>', 'id of the schedule')
    .requiredOption('--from <instant>', 'start of the range, ISO 8601')
    .requiredOption('--to <instant>', 'end of the range')
    .option('--name <text>', 'name of the backfill: the same name runs no tick twice')
    .addOption(command.createOption('--overlap <policy>', 'policy between its runs (queue-all)').choices(OVERLAPS))
  withClientOptions(command)
    .addHelpText(
      'after',
      `
Enqueues a run for each tick of a past range, whether it ran before or not.
A repetition adds nothing. Ctrl-C ends it; a repetition then adds the rest.

Examples:
  belfry backfill digest/eu --from 2026-03-01T00:00Z --to 2026-03-07T23:59Z
  belfry backfill digest/eu --from 2026-03-01T00:00Z --to 2026-03-02T00:00Z \\
    --name after-the-fix`,
    )
    .action((id: string, { from, to, name, overlap, ...flags }: BackfillFlags) =>
      withClient(flags, async ({ client, out }) => {
        const range = {
          ...{ from, to },
          ...(name === undefined ? {} : { name }),
          ...(overlap === undefined ? {} : { overlap }),
        }
        const backfill = watched({ client, out }, (options) => client.schedules.backfill(id, range, options))
        const result = await backfill.catch(async (error: unknown) => {
          const isMissing = error instanceof ServiceError && error.code === 'SCHEDULE_NOT_FOUND'
          throw isMissing ? await missingSchedule(client, id) : error
        })
        const { enqueued, duplicates, busy } = result
        out.one(result, () => [
          `${enqueued} enqueued`,
          ...(duplicates > 0 ? [`${duplicates} were enqueued by this backfill before`] : []),
          ...(busy > 0 ? [`${busy} refused: another run holds their exclusive key`] : []),
        ])
      }),
    )
}
