import type { Command } from 'commander'
import { eachRun, type ManyRunFlags } from '../operator/many-runs.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'
import { runFilters } from '../operator/run-filters.js'

export function retryCommand(command: Command): void {
  runFilters(command.argument('[id...]', 'of the runs')).option('--all', 'all that failed')
  onOperator(command)
    .addHelpText(
      'after',
      `
With filters those that failed are meant, unless --state names others of
failed, cancelled and skipped. All attempts are ahead of them again.

Examples:
  belfry retry 1842
  belfry retry --job send-digest
  belfry retry --schedule digest/eu --state failed,cancelled`,
    )
    .action((ids: readonly string[], flags: Flags & ManyRunFlags) =>
      operate(flags, (desk) =>
        eachRun(desk, ids, flags, {
          one: async (id) => (await desk.client.runs.retry(id)).state,
          many: (meant) => desk.client.runs.retryMany(meant),
          outcome: 'ready',
          states: ['failed'],
        }),
      ),
    )
}
