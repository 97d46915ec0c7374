import type { Command } from 'commander'
import { ServiceError } from '../../client/request.js'
import { OVERLAPS, type Overlap } from '../../core/policies.js'
import { missingSchedule } from '../operator/missing.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'

interface BackfillFlags extends Flags {
  readonly from: string
  readonly to: string
  readonly name?: string
  readonly overlap?: Overlap
}

export function backfillCommand(command: Command): void {
  command
    .argument('<id>', 'of the schedule')
    .requiredOption('--from <instant>', 'the first tick that is meant, ISO 8601')
    .requiredOption('--to <instant>', 'the last')
    .option('--name <text>', 'names it: the same name runs no tick twice')
    .addOption(command.createOption('--overlap <policy>', 'one after another (queue-all)').choices(OVERLAPS))
  onOperator(command)
    .addHelpText(
      'after',
      `
Runs the ticks of a past stretch of time, again or for the first time.
Repeating it adds nothing.

Examples:
  belfry backfill digest/eu --from 2026-03-01T00:00Z --to 2026-03-07T23:59Z
  belfry backfill digest/eu --from 2026-03-01T00:00Z --to 2026-03-02T00:00Z \\
    --name after-the-fix`,
    )
    .action((id: string, { from, to, name, overlap, ...flags }: BackfillFlags) =>
      operate(flags, async ({ client, out }) => {
        const result = await client.schedules
          .backfill(id, {
            ...{ from, to },
            ...(name === undefined ? {} : { name }),
            ...(overlap === undefined ? {} : { overlap }),
          })
          .catch(async (error: unknown) => {
            const isMissing = error instanceof ServiceError && error.code === 'SCHEDULE_NOT_FOUND'
            throw isMissing ? await missingSchedule(client, id) : error
          })
        const { enqueued, duplicates, busy } = result
        out.one(result, () => [
          `${enqueued} enqueued`,
          ...(duplicates > 0 ? [`${duplicates} had been run by this backfill before`] : []),
          ...(busy > 0 ? [`${busy} refused: their exclusive key is taken`] : []),
        ])
      }),
    )
}
