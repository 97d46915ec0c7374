import type { Command } from 'commander'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { eachRun, type ManyRunFlags } from '../operator/many-runs.js'
import { runFilters } from '../operator/run-filters.js'

export function retryCommand(command: Command): void {
  runFilters(command.argument('[id...]', 'ids of runs')).option('--all', 'all that failed')
  withClientOptions(command)
    .addHelpText(
      'after',
      `
Filters select failed runs, unless --state names failed, cancelled or skipped.
A retried run has all its attempts again. With filters the service works through
the runs; Ctrl-C ends that.

Examples:
  belfry retry 1842
  belfry retry --job send-digest
  belfry retry --schedule digest/eu --state failed,cancelled`,
    )
    .action((ids: readonly string[], flags: Flags & ManyRunFlags) =>
      withClient(flags, (context) =>
        eachRun(context, ids, flags, {
          one: async (id) => (await context.client.runs.retry(id)).state,
          kind: 'retry-runs',
          outcome: 'ready',
          state: ['failed'],
        }),
      ),
    )
}
