import type { Command } from 'commander'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'

export function thawCommand(command: Command): void {
  withClientOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  belfry thaw`,
    )
    .action((flags: Flags) =>
      withClient(flags, async ({ client, out }) => {
        const state = await client.thaw()
        out.one(state, () => ['runs start again'])
      }),
    )
}
