import { z } from 'zod'
import type { Belfry } from '../../belfry.js'
import { fresh } from '../fresh.js'
import { json } from '../reply.js'
import { type Route, route } from '../route.js'

const health = z.strictObject({ status: z.literal('ok') }).meta({ id: 'Health' })

/** Nobody has to log in to ask, so the store is asked no more often than this. */
const FRESH_MS = 250

export function healthRoutes(belfry: Belfry): readonly Route[] {
  const ask = fresh(() => belfry.frozen(), FRESH_MS)
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
      summary: 'Whether the store answers.',
      answers: { 200: { description: 'It does.', schema: health } },
      handle: async () => {
        await ask()
        return json({ status: 'ok' })
      },
    }),
  ]
}
