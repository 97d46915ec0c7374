import type { MiddlewareHandler } from 'hono'
import type { Caller } from '../caller.js'
import type { ServerEnv } from '../server-env.js'
import type { ParsedServerOptions } from '../server-options.js'

const LOCAL: Caller = { name: 'local', role: 'admin' }

/** Lets a request pass once it is known who asks. Paths that are open to all have no caller. */
export function guard(options: ParsedServerOptions, isOpen: (path: string) => boolean): MiddlewareHandler<ServerEnv> {
  const { authorise = async () => LOCAL } = options
  return async (c, next) => {
    if (!isOpen(c.req.path)) c.set('caller', await authorise(c.req.raw, c.env.info))
    await next()
  }
}
