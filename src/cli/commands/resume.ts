import type { Command } from 'commander'
import { eachSchedule, type ManyFlags, withIds } from '../operator/many-schedules.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'

export function resumeCommand(command: Command): void {
  onOperator(withIds(command, 'resume'))
    .addHelpText(
      'after',
      `
Examples:
  belfry resume digest/eu
  belfry resume --prefix billing/`,
    )
    .action((ids: readonly string[], flags: Flags & ManyFlags) =>
      operate(flags, (desk) =>
        eachSchedule(desk, ids, flags, 'paused', async (id) => {
          const { state } = await desk.client.schedules.resume(id)
          return { id, outcome: state }
        }),
      ),
    )
}
