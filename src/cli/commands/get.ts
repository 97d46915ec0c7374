import type { Command } from 'commander'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { missingSchedule } from '../operator/missing.js'

export function getCommand(command: Command): void {
  withClientOptions(command.argument('<id>', 'id of the schedule'))
    .addHelpText(
      'after',
      `
Examples:
  belfry get digest/eu
  belfry get digest/eu -o json`,
    )
    .action((id: string, flags: Flags) =>
      withClient(flags, async ({ client, out }) => {
        const { scheduleLines } = await import('../terminal/schedule-text.js')
        const schedule = await client.schedules.get(id)
        if (schedule === undefined) throw await missingSchedule(client, id)
        out.one(schedule, () => scheduleLines(schedule, Date.now(), out.style))
      }),
    )
}
