import type { Command } from 'commander'
import type { AuditEntry } from '../../client/index.js'
import { pagesOf } from '../../client/pages.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { firstOf, type Limited, pageSize, withLimit } from '../operator/list-limit.js'
import type { Column } from '../terminal/table.js'

export function auditCommand(command: Command): void {
  withClientOptions(withLimit(command))
    .addHelpText(
      'after',
      `
Newest first, for 90 days. A service requires the role admin.

Examples:
  belfry audit -n 20
  belfry audit --all -o jsonl`,
    )
    .action((flags: Flags & Limited) =>
      withClient(flags, async ({ client, out }) => {
        const limit = pageSize(flags, 1_000)
        const entries = pagesOf((paging) => client.audit({ limit, ...paging }))
        await out.list(firstOf(entries, flags, out), COLUMNS, 'no changes yet')
      }),
    )
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: 'when (utc)', cell: ({ at }) => at.slice(0, 19).replace('T', ' ') },
  { title: 'caller', cell: ({ caller }) => caller, least: 8 },
  { title: 'action', cell: ({ action }) => action },
  { title: 'target', cell: ({ target }) => target, least: 10 },
  { title: 'detail', cell: ({ detail }) => (detail === undefined ? '' : JSON.stringify(detail)), least: 6 },
]
