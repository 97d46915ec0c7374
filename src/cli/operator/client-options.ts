import type { Command } from 'commander'
import type { CommandContext } from './with-client.js'

export type { CommandContext } from './with-client.js'
export type Flags = Readonly<Record<string, unknown>>

/** Adds the options that choose the service or store, and the output format. */
export function withClientOptions(command: Command): Command {
  return command
    .option('-o, --output <format>', 'table, json or jsonl')
    .optionsGroup('Where:')
    .option('--url <url>', 'a service (http://127.0.0.1:7420)')
    .option('--token <token>', 'its token; better set BELFRY_TOKEN')
    .option('--store <where>', 'or a store: postgres://…, redis://… or a file')
    .option('--schema <name>', 'the Postgres schema, or the prefix of Redis keys')
    .option('--config <file>', 'settings: JSON, YAML or code (belfry.config.*)')
}

/** Loads the client only when a command runs: `--help` does not need it. */
export async function withClient(flags: Flags, work: (context: CommandContext) => Promise<void>): Promise<void> {
  await (await import('./with-client.js')).withClient(flags, work)
}
