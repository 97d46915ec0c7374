import type { Command } from 'commander'
import type { RunQuery } from '../../client/index.js'
import { firstOf, type Limited, pageSize, withLimit } from '../operator/list-limit.js'
import { type Desk, type Flags, onOperator, operate } from '../operator/on-operator.js'
import { filtersOf, type RunFlags, runFilters } from '../operator/run-filters.js'

interface RunsFlags extends Flags, Limited, RunFlags {
  readonly follow?: boolean
}

export function runsCommand(command: Command): void {
  runFilters(withLimit(command.option('-f, --follow', 'show the newest, then whatever happens')))
  onOperator(command)
    .addHelpText(
      'after',
      `
Newest first. Followed, they come as they change, within about a second.

Examples:
  belfry runs --state failed,cancelled
  belfry runs --schedule digest/eu -n 20
  belfry runs -f --job send-digest`,
    )
    .action((flags: RunsFlags) => operate(flags, (desk) => (flags.follow ? follow(desk, flags) : list(desk, flags))))
}

async function list({ client, out }: Desk, flags: RunsFlags): Promise<void> {
  const { runColumns } = await import('../terminal/run-text.js')
  const runs = client.runs.all({ ...queryOf(flags), limit: pageSize(flags, 1_000) })
  await out.list(firstOf(runs, flags, out), runColumns(Date.now()), 'there are no such runs')
}

async function follow(desk: Desk, flags: RunsFlags): Promise<void> {
  const { followRuns } = await import('../operator/follow-runs.js')
  await followRuns(desk, queryOf(flags), flags.limit)
}

function queryOf(flags: RunsFlags): Omit<RunQuery, 'cursor' | 'limit'> {
  const { states, ...filters } = filtersOf(flags)
  return { ...filters, ...(states === undefined ? {} : { state: states }) }
}
