import type { Command } from 'commander'
import { UNFINISHED_STATES } from '../../core/runs/run.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { eachRun, type ManyRunFlags } from '../operator/many-runs.js'
import { runFilters } from '../operator/run-filters.js'

export function cancelCommand(command: Command): void {
  runFilters(command.argument('[id...]', 'ids of runs')).option('--all', 'all that have not ended')
  withClientOptions(command)
    .addHelpText(
      'after',
      `
A run that has not started is cancelled at once; a running one is asked to stop,
and has five seconds to do so. Filters select runs that have not ended. The
service then works through them; Ctrl-C ends that.

Examples:
  belfry cancel 1842
  belfry cancel --schedule digest/eu
  belfry cancel --job send-digest --state waiting,ready`,
    )
    .action((ids: readonly string[], flags: Flags & ManyRunFlags) =>
      withClient(flags, (context) =>
        eachRun(context, ids, flags, {
          one: async (id) => (await context.client.runs.cancel(id)).outcome,
          kind: 'cancel-runs',
          outcome: 'cancelled, or asked to stop',
          state: [...UNFINISHED_STATES],
        }),
      ),
    )
}
