import type { Command } from 'commander'
import type { Desk } from './operate.js'

export type { Desk } from './operate.js'
export type Flags = Readonly<Record<string, unknown>>

/** Adds the options that say where to work and how to answer. */
export function onOperator(command: Command): Command {
  return command
    .option('-o, --output <format>', 'table, json or jsonl')
    .optionsGroup('Where:')
    .option('--url <url>', 'a service (http://127.0.0.1:7420)')
    .option('--token <token>', 'its token; better set BELFRY_TOKEN')
    .option('--store <where>', 'or a store: postgres://…, redis://… or a file')
    .option('--schema <name>', 'the Postgres schema, or what Redis keys begin with')
    .option('--config <file>', 'settings: JSON, YAML or code (belfry.config.*)')
}

/** Loaded when something is done: `--help` needs none of it. */
export async function operate(flags: Flags, work: (desk: Desk) => Promise<void>): Promise<void> {
  await (await import('./operate.js')).operate(flags, work)
}
