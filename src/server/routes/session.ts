/** Sessions of browsers: a token goes in once, a cookie that no script can read comes out. */
import { z } from 'zod'
import { json, noContent } from '../http/reply.js'
import { type Route, route } from '../http/route.js'
import type { Gate } from '../security/authorise.js'
import type { RequestInfo } from '../security/caller.js'
import { endedCookie, sessionCookie, shownSession } from '../security/sessions.js'

const caller = z
  .strictObject({
    name: z.string(),
    role: z.enum(['viewer', 'operator', 'admin']),
    prefix: z.string().optional().meta({ description: 'Only ids that begin with this.' }),
  })
  .meta({ id: 'Caller' })

const login = z
  .strictObject({ token: z.string().min(1).max(500).meta({ description: 'As `belfry token create` printed it.' }) })
  .meta({ id: 'Login' })

export function sessionRoutes(gate: Gate | undefined, basePath: string): readonly Route[] {
  const who = whoRoute()
  return gate === undefined ? [who] : [who, ...loginRoutes(gate, basePath)]
}

function whoRoute(): Route {
  return route({
    ...{ method: 'get', path: '/v1/session', id: 'getSession', tag: 'session', role: 'viewer' },
    summary: 'Who asks, and what they may do.',
    answers: { 200: { description: 'The caller.', schema: caller } },
    handle: (c) => json(c.get('caller')),
  })
}

/** Where the service itself has the tokens. A host app that decides who asks has sessions of its own. */
function loginRoutes(gate: Gate, basePath: string): readonly Route[] {
  return [
    route({
      method: 'post',
      path: '/v1/session',
      id: 'logIn',
      tag: 'session',
      summary: 'Begins the session of a browser.',
      body: login,
      answers: {
        204: {
          description: 'The session has begun.',
          headers: { 'Set-Cookie': 'HttpOnly, SameSite=Strict; 12 hours' },
        },
      },
      handle: async (c, { body }) => {
        const value = await gate.logIn(c.req.raw, c.env.info, body.token)
        return noContent({ 'set-cookie': sessionCookie(value, basePath, isSecure(c.env.info)) })
      },
    }),
    route({
      method: 'delete',
      path: '/v1/session',
      id: 'logOut',
      tag: 'session',
      summary: 'Ends the session of a browser.',
      answers: {
        204: { description: 'The session is over.', headers: { 'Set-Cookie': 'takes the cookie away' } },
      },
      handle: async (c) => {
        gate.checkPage(c.req.raw)
        const shown = shownSession(c.req.raw)
        if (shown !== undefined) await gate.logOut(shown)
        return noContent({ 'set-cookie': endedCookie(basePath, isSecure(c.env.info)) })
      },
    }),
  ]
}

function isSecure({ secure = false }: RequestInfo): boolean {
  return secure
}
