import type { Command } from 'commander'
import type { RunQuery } from '../../client/index.js'
import { type CommandContext, type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { firstOf, type Limited, pageSize, withLimit } from '../operator/list-limit.js'
import { filtersOf, type RunFlags, runFilters } from '../operator/run-filters.js'

interface RunsFlags extends Flags, Limited, RunFlags {
  readonly follow?: boolean
}

export function runsCommand(command: Command): void {
  runFilters(withLimit(command.option('-f, --follow', 'show the newest, then every change')))
  withClientOptions(command)
    .addHelpText(
      'after',
      `
Newest first. With -f, changes appear within about a second.

Examples:
  belfry runs --state failed,cancelled
  belfry runs --schedule digest/eu -n 20
  belfry runs -f --job send-digest`,
    )
    .action((flags: RunsFlags) =>
      withClient(flags, (context) => (flags.follow ? follow(context, flags) : list(context, flags))),
    )
}

async function list({ client, out }: CommandContext, flags: RunsFlags): Promise<void> {
  const { runColumns } = await import('../terminal/run-text.js')
  const runs = client.runs.all({ ...queryOf(flags), limit: pageSize(flags, 1_000) })
  await out.list(firstOf(runs, flags, out), runColumns(Date.now()), 'there are no such runs')
}

async function follow(context: CommandContext, flags: RunsFlags): Promise<void> {
  const { followRuns } = await import('../operator/follow-runs.js')
  await followRuns(context, queryOf(flags), flags.limit)
}

function queryOf(flags: RunsFlags): Omit<RunQuery, 'cursor' | 'limit'> {
  return filtersOf(flags)
}
