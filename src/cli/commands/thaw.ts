import type { Command } from 'commander'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'

export function thawCommand(command: Command): void {
  onOperator(command)
    .addHelpText(
      'after',
      `
Examples:
  belfry thaw`,
    )
    .action((flags: Flags) =>
      operate(flags, async ({ client, out }) => {
        const state = await client.thaw()
        out.one(state, () => ['runs start again'])
      }),
    )
}
