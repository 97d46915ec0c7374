import type { Command } from 'commander'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { eachOrOperation, type ManyFlags, withIds } from '../operator/many-schedules.js'

export function resumeCommand(command: Command): void {
  withClientOptions(withIds(command, 'resume').option('--note <text>', 'the reason, for the audit trail'))
    .addHelpText(
      'after',
      `
Examples:
  belfry resume digest/eu
  belfry resume digest/eu --note "the mail server is back"
  belfry resume --prefix billing/`,
    )
    .action((ids: readonly string[], flags: Flags & ManyFlags & { readonly note?: string }) =>
      withClient(flags, (context) =>
        eachOrOperation(context, ids, flags, { kind: 'resume-schedules', changed: 'resumed' }, async (id) => {
          const { state } = await context.client.schedules.resume(id, flags.note)
          return { id, outcome: state }
        }),
      ),
    )
}
