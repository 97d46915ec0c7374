import { z } from 'zod'
import { OUTAGE_CARE } from '../../api/sinks/unreachable-sinks.js'
import type { Belfry } from '../../belfry.js'
import { fresh } from '../http/cached.js'
import { json } from '../http/reply.js'
import { type Route, route } from '../http/route.js'
import { redactedText } from '../security/redacted.js'
import { iso, time } from '../shapes/fields.js'

const health = z.strictObject({ status: z.literal('ok') }).meta({ id: 'Health' })

const readiness = z
  .strictObject({
    status: z.literal('ok'),
    unreachableSinks: z
      .array(z.strictObject({ sink: z.string(), since: time, error: z.string(), advice: z.string() }))
      .exactOptional()
      .meta({ description: 'Sinks that instances cannot reach. They make nobody unready: events wait in the store.' }),
  })
  .meta({ id: 'Readiness' })

/** Nobody has to log in to ask, so the store is asked no more often than this. */
const FRESH_MS = 250

export function healthRoutes(belfry: Belfry): readonly Route[] {
  const ask = fresh(() => belfry.unreachableSinks(), FRESH_MS)
  return [
    route({
      method: 'get',
      path: '/healthz',
      id: 'getHealth',
      tag: 'service',
      summary: 'Whether this process answers.',
      answers: { 200: { description: 'It does.', schema: health } },
      handle: () => json({ status: 'ok' }),
    }),
    route({
      method: 'get',
      path: '/readyz',
      id: 'getReadiness',
      tag: 'service',
      summary: 'Whether the store answers, and which sinks cannot be reached.',
      answers: { 200: { description: 'It does.', schema: readiness } },
      handle: async () => {
        const sinks = (await ask()).map(({ sink, since, error }) => ({
          ...{ sink, since: iso(since), error: redactedText(error), advice: OUTAGE_CARE },
        }))
        return json({ status: 'ok', ...(sinks.length === 0 ? {} : { unreachableSinks: sinks }) })
      },
    }),
  ]
}
