import { z } from 'zod'
import type { Belfry } from '../../belfry.js'
import { type Route, route } from '../route.js'

const health = z.strictObject({ status: z.literal('ok') }).meta({ id: 'Health' })

export function healthRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      method: 'get',
      path: '/healthz',
      id: 'getHealth',
      tag: 'service',
      summary: 'Whether this process answers.',
      answers: { 200: { description: 'It does.', schema: health } },
      handle: (c) => c.json({ status: 'ok' }),
    }),
    route({
      method: 'get',
      path: '/readyz',
      id: 'getReadiness',
      tag: 'service',
      summary: 'Whether the store answers.',
      answers: { 200: { description: 'It does.', schema: health } },
      handle: async (c) => {
        await belfry.frozen()
        return c.json({ status: 'ok' })
      },
    }),
  ]
}
