import type { Command } from 'commander'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { eachSchedule, type ManyFlags, withIds } from '../operator/many-schedules.js'

export function resumeCommand(command: Command): void {
  withClientOptions(withIds(command, 'resume'))
    .addHelpText(
      'after',
      `
Examples:
  belfry resume digest/eu
  belfry resume --prefix billing/`,
    )
    .action((ids: readonly string[], flags: Flags & ManyFlags) =>
      withClient(flags, (context) =>
        eachSchedule(context, ids, flags, 'paused', async (id) => {
          const { state } = await context.client.schedules.resume(id)
          return { id, outcome: state }
        }),
      ),
    )
}
