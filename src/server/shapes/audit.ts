/** An entry of the audit trail. */
import { z } from 'zod'
import { json, time } from './fields.js'

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
