/** An entry of the audit trail. */
import { z } from 'zod'
import type { AuditEntry as StoredEntry } from '../audit/audit-entries.js'
import type { Visible } from '../security/visibility.js'
import { iso, json, time } from './fields.js'

export const auditEntry = z
  .strictObject({
    id: z.string(),
    at: time,
    caller: z.string(),
    role: z.string(),
    action: z.string().meta({ examples: ['schedule.put'] }),
    target: z.string(),
    detail: json.exactOptional(),
  })
  .meta({ id: 'AuditEntry' })

export type AuditEntry = z.output<typeof auditEntry>

export function toAuditEntry({ at, prefix: _, ...rest }: Visible<StoredEntry>): AuditEntry {
  return { ...rest, at: iso(at) }
}
