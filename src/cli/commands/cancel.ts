import type { Command } from 'commander'
import { UNFINISHED_STATES } from '../../core/run.js'
import { eachRun, type ManyRunFlags } from '../operator/many-runs.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'
import { runFilters } from '../operator/run-filters.js'

export function cancelCommand(command: Command): void {
  runFilters(command.argument('[id...]', 'of the runs')).option('--all', 'all that have not ended')
  onOperator(command)
    .addHelpText(
      'after',
      `
What has not started is cancelled at once; what runs is asked to end, and has
five seconds for it. With filters those that have not ended are meant.

Examples:
  belfry cancel 1842
  belfry cancel --schedule digest/eu
  belfry cancel --job send-digest --state waiting,ready`,
    )
    .action((ids: readonly string[], flags: Flags & ManyRunFlags) =>
      operate(flags, (desk) =>
        eachRun(desk, ids, flags, {
          one: async (id) => (await desk.client.runs.cancel(id)).outcome,
          many: (meant) => desk.client.runs.cancelMany(meant),
          outcome: 'cancelled, or asked to',
          states: [...UNFINISHED_STATES],
        }),
      ),
    )
}
