import { z } from 'zod'
import type { AuditTrail } from '../audit/audit-trail.js'
import { json } from '../http/reply.js'
import { type Route, route } from '../http/route.js'
import { auditEntry } from '../shapes/answers.js'
import { iso } from '../shapes/fields.js'
import { after, listOf, paging, toList } from '../shapes/list.js'

export function auditRoute(trail: AuditTrail): Route {
  return route({
    ...{ method: 'get', path: '/v1/audit', id: 'listAudit', tag: 'service', role: 'admin' },
    summary: 'Who changed what, newest first. A page may be short; only `nextCursor` says that it is the last.',
    query: z.strictObject(paging),
    answers: { 200: { description: 'A page.', schema: listOf(auditEntry) } },
    handle: async (c, { query: { cursor, limit } }) => {
      const { prefix } = c.get('caller')
      const page = await trail.list({ limit, ...after(cursor), ...(prefix === undefined ? {} : { prefix }) })
      return json(toList(page, ({ at, ...rest }) => ({ ...rest, at: iso(at) })))
    },
  })
}
