import type { Command } from 'commander'
import type { JobResource } from '../../client/index.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'
import type { Column } from '../terminal/table.js'

const COLUMNS: readonly Column<JobResource>[] = [
  { title: 'job', cell: ({ name }) => name, least: 16 },
  {
    title: 'run by',
    cell: ({ instances }) => (instances.length === 0 ? 'nobody' : String(instances.length)),
    paint: (style, { instances }) => (instances.length === 0 ? style.red : undefined),
  },
  { title: 'exclusive', cell: exclusiveOf, least: 12 },
]

export function jobsCommand(command: Command): void {
  onOperator(command)
    .addHelpText(
      'after',
      `
The jobs that instances run, or once ran.

Examples:
  belfry jobs
  belfry jobs -o json`,
    )
    .action((flags: Flags) =>
      operate(flags, async ({ client, out }) => {
        await out.list((await client.jobs.list()).data, COLUMNS, 'nobody has run any job yet')
      }),
    )
}

function exclusiveOf({ exclusive }: JobResource): string {
  if (exclusive === undefined) return 'no'
  const { by, limit, whenBusy } = exclusive
  const what = by === undefined ? 'by payload' : by === 'code' ? 'by code' : `by ${by.join(', ')}`
  return `${what}${limit === 1 ? '' : `, ${limit} at a time`}; ${whenBusy}s when busy`
}
