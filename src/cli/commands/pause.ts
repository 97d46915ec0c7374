import type { Command } from 'commander'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { eachOrOperation, type ManyFlags, withIds } from '../operator/many-schedules.js'

export function pauseCommand(command: Command): void {
  withClientOptions(withIds(command, 'pause').option('--note <text>', 'the reason, for other operators'))
    .addHelpText(
      'after',
      `
Ticks of a paused schedule are recorded as skipped. Running runs continue.

Examples:
  belfry pause digest/eu --note "until the mail server is back"
  belfry pause --prefix billing/ --note migration`,
    )
    .action((ids: readonly string[], flags: Flags & ManyFlags & { readonly note?: string }) =>
      withClient(flags, (context) =>
        eachOrOperation(context, ids, flags, { kind: 'pause-schedules', changed: 'paused' }, async (id) => {
          await context.client.schedules.pause(id, flags.note)
          return { id, outcome: 'paused' }
        }),
      ),
    )
}
