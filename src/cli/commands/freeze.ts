import type { Command } from 'commander'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'

export function freezeCommand(command: Command): void {
  onOperator(command.option('--note <text>', 'why, for whoever looks'))
    .addHelpText(
      'after',
      `
Ticks are recorded all the same and run after belfry thaw, if their schedules
allow them to be late. What runs goes on.

Examples:
  belfry freeze --note "database maintenance until 14:00"`,
    )
    .action((flags: Flags & { readonly note?: string }) =>
      operate(flags, async ({ client, out }) => {
        const state = await client.freeze(flags.note)
        const note = state.note === undefined ? '' : `: ${state.note}`
        out.one(state, () => [`frozen since ${state.at}${note}`])
      }),
    )
}
