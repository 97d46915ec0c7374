import type { Command } from 'commander'
import type { JobResource } from '../../client/index.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import type { Column } from '../terminal/table.js'

const COLUMNS: readonly Column<JobResource>[] = [
  { title: 'job', cell: ({ name }) => name, least: 16 },
  {
    title: 'instances',
    cell: ({ instances }) => (instances.length === 0 ? 'none' : String(instances.length)),
    paint: (style, { instances }) => (instances.length === 0 ? style.red : undefined),
  },
  { title: 'exclusive', cell: exclusiveOf, least: 12 },
]

export function jobsCommand(command: Command): void {
  withClientOptions(command)
    .addHelpText(
      'after',
      `
The jobs that instances run, or have run.

Examples:
  belfry jobs
  belfry jobs -o json`,
    )
    .action((flags: Flags) =>
      withClient(flags, async ({ client, out }) => {
        await out.list((await client.jobs.list()).data, COLUMNS, 'no jobs yet')
      }),
    )
}

function exclusiveOf({ exclusive }: JobResource): string {
  if (exclusive === undefined) return 'no'
  const { by, limit, whenBusy } = exclusive
  const what = by === undefined ? 'by payload' : by === 'code' ? 'by code' : `by ${by.join(', ')}`
  return `${what}${limit === 1 ? '' : `, ${limit} at a time`}; ${whenBusy === undefined ? 'ticks skip' : `${whenBusy}s`} when busy`
}
