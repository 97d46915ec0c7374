import type { Command } from 'commander'
import type { AuditEntry } from '../../client/index.js'
import { pagesOf } from '../../client/pages.js'
import { firstOf, type Limited, pageSize, withLimit } from '../operator/list-limit.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'
import type { Column } from '../terminal/table.js'

export function auditCommand(command: Command): void {
  onOperator(withLimit(command))
    .addHelpText(
      'after',
      `
Newest first, for 90 days. Over a service it takes the role admin.

Examples:
  belfry audit -n 20
  belfry audit --all -o jsonl`,
    )
    .action((flags: Flags & Limited) =>
      operate(flags, async ({ client, out }) => {
        const limit = pageSize(flags, 1_000)
        const entries = pagesOf((paging) => client.audit({ limit, ...paging }))
        await out.list(firstOf(entries, flags, out), COLUMNS, 'nothing was changed yet')
      }),
    )
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: 'when (utc)', cell: ({ at }) => at.slice(0, 19).replace('T', ' ') },
  { title: 'who', cell: ({ caller }) => caller, least: 8 },
  { title: 'did', cell: ({ action }) => action },
  { title: 'to', cell: ({ target }) => target, least: 10 },
  { title: 'detail', cell: ({ detail }) => (detail === undefined ? '' : JSON.stringify(detail)), least: 6 },
]
