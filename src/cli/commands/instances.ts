import type { Command } from 'commander'
import type { InstanceResource } from '../../client/index.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import type { Column } from '../terminal/table.js'

export function instancesCommand(command: Command): void {
  withClientOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  belfry instances
  belfry instances -o jsonl`,
    )
    .action((flags: Flags) =>
      withClient(flags, async ({ client, out }) => {
        const { briefly } = await import('../terminal/human-time.js')
        const now = Date.now()
        const columns: readonly Column<InstanceResource>[] = [
          { title: 'id', cell: ({ id }) => id, least: 10 },
          { title: 'host', cell: ({ host, pid }) => `${host}:${pid}`, least: 10 },
          {
            title: 'state',
            cell: ({ live }) => (live ? 'live' : 'gone'),
            paint: (style, { live }) => (live ? style.green : style.red),
          },
          { title: 'beat', cell: ({ beatAt }) => briefly(Date.parse(beatAt), now) },
          { title: 'app', cell: ({ app, release }) => [app, release].filter(Boolean).join(' '), least: 4 },
          { title: 'jobs', cell: ({ jobs }) => jobs.join(', '), least: 6 },
        ]
        await out.list((await client.instances()).data, columns, 'no instances')
      }),
    )
}
