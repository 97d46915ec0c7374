import { z } from 'zod'
import { openApi } from '../http/open-api.js'
import { content } from '../http/reply.js'
import { type Route, route } from '../http/route.js'

/** Describes the other routes, and itself. */
export function openApiRoute(others: readonly Route[], basePath: string): Route {
  const self: Route = route({
    ...{ method: 'get', path: '/openapi.json', id: 'getOpenApi', tag: 'service' },
    summary: 'This document.',
    answers: { 200: { description: 'OpenAPI 3.1.', schema: z.record(z.string(), z.unknown()) } },
    handle: () => content(document(), 'application/json'),
  })
  // Anybody may ask, so it is made once.
  let made: string | undefined
  const document = (): string => {
    made ??= JSON.stringify(openApi([...others, self], basePath))
    return made
  }
  return self
}
