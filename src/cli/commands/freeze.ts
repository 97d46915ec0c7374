import type { Command } from 'commander'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'

export function freezeCommand(command: Command): void {
  withClientOptions(command.option('--note <text>', 'the reason, for other operators'))
    .addHelpText(
      'after',
      `
Ticks are still recorded, and run after belfry thaw if their schedules allow
them to be late. Running runs continue.

Examples:
  belfry freeze --note "database maintenance until 14:00"`,
    )
    .action((flags: Flags & { readonly note?: string }) =>
      withClient(flags, async ({ client, out }) => {
        const state = await client.freeze(flags.note)
        const note = state.note === undefined ? '' : `: ${state.note}`
        out.one(state, () => [`frozen since ${state.at}${note}`])
      }),
    )
}
