import type { Command } from 'commander'
import { missingSchedule } from '../operator/missing.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'

export function getCommand(command: Command): void {
  onOperator(command.argument('<id>', 'of the schedule'))
    .addHelpText(
      'after',
      `
Examples:
  belfry get digest/eu
  belfry get digest/eu -o json`,
    )
    .action((id: string, flags: Flags) =>
      operate(flags, async ({ client, out }) => {
        const { scheduleLines } = await import('../terminal/schedule-text.js')
        const schedule = await client.schedules.get(id)
        if (schedule === undefined) throw await missingSchedule(client, id)
        out.one(schedule, () => scheduleLines(schedule, Date.now(), out.style))
      }),
    )
}
