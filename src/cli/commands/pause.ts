import type { Command } from 'commander'
import { eachSchedule, type ManyFlags, withIds } from '../operator/many-schedules.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'

export function pauseCommand(command: Command): void {
  onOperator(withIds(command, 'pause').option('--note <text>', 'why, for whoever looks'))
    .addHelpText(
      'after',
      `
Ticks of a paused schedule are recorded as skipped. What runs goes on.

Examples:
  belfry pause digest/eu --note "until the mail server is back"
  belfry pause --prefix billing/ --note migration`,
    )
    .action((ids: readonly string[], flags: Flags & ManyFlags & { readonly note?: string }) =>
      operate(flags, (desk) =>
        eachSchedule(desk, ids, flags, 'active', async (id) => {
          await desk.client.schedules.pause(id, flags.note)
          return { id, outcome: 'paused' }
        }),
      ),
    )
}
