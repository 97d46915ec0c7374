import type { Command } from 'commander'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { fieldLines } from '../terminal/output.js'

export function statsCommand(command: Command): void {
  withClientOptions(command)
    .addHelpText(
      'after',
      `
Counting stops at a thousand.

Examples:
  belfry stats
  belfry stats -o json`,
    )
    .action((flags: Flags) =>
      withClient(flags, async ({ client, out }) => {
        const stats = await client.stats()
        const { instances, due, ready, waiting, running, freeze } = stats
        const count = (what: typeof due, of = '') =>
          what === undefined ? 'not shown to this token' : `${what.count}${what.more ? ' or more' : ''}${of}`
        const note = freeze.note === undefined ? '' : `: ${freeze.note}`
        const fields = {
          instances: `${instances.live} live${instances.gone > 0 ? `, ${instances.gone} gone` : ''}`,
          due: count(due, ' that could start now'),
          running: count(running),
          ready: count(ready, ', delayed ones included'),
          waiting: count(waiting, ', for a key, an earlier run or an instance with the job'),
          frozen: freeze.frozen ? `since ${freeze.at}${note}` : 'no',
        }
        out.one(stats, () => fieldLines(fields, out.style))
      }),
    )
}
