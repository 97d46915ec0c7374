/** /v1/session: exchanges a token for a session cookie that scripts cannot read. */

import { z } from 'zod'
import { json, noContent } from '../http/reply.js'
import { type Route, route } from '../http/route.js'
import type { Gate } from '../security/authorise.js'
import type { RequestInfo } from '../security/caller.js'
import { SERVICE_ROLES } from '../security/caller.js'
import { endedCookie, sessionCookie, sessionOf } from '../security/sessions.js'

const caller = z
  .strictObject({
    name: z.string(),
    role: z.enum(SERVICE_ROLES).meta({ id: 'Role' }),
    prefix: z.string().optional().meta({ description: 'Only ids that begin with this.' }),
    jobs: z
      .array(z.string())
      .optional()
      .meta({ description: 'The jobs that its schedules may name. Default: those that begin with the prefix.' }),
    quota: z
      .looseObject({})
      .meta({ id: 'Quota' })
      .optional()
      .meta({ description: 'How much there may be below the prefix.' }),
    sinks: z
      .array(z.string())
      .optional()
      .meta({ description: 'The sinks that its schedules may name. Default: those that begin with the prefix.' }),
  })
  .meta({ id: 'Caller' })

const login = z
  .strictObject({
    token: z.string().min(1).max(500).meta({ description: 'The token, as `belfry token create` printed it.' }),
  })
  .meta({ id: 'Login', bodies: [{ token: 'belfry_…' }] })

export function sessionRoutes(gate: Gate | undefined): readonly Route[] {
  return gate === undefined ? [callerRoute()] : [callerRoute(), ...loginRoutes(gate)]
}

function callerRoute(): Route {
  return route({
    ...{ method: 'get', path: '/v1/session', id: 'getSession', tag: 'session', role: 'viewer' },
    summary: 'The authenticated caller.',
    answers: { 200: { description: 'The caller.', schema: caller } },
    handle: (c) => json(c.get('caller')),
  })
}

/** Mounted only if the service authenticates by its own tokens: a host app that authenticates callers has its own sessions. */
function loginRoutes(gate: Gate): readonly Route[] {
  return [
    route({
      method: 'post',
      path: '/v1/session',
      id: 'logIn',
      tag: 'session',
      summary: 'Starts a browser session.',
      body: login,
      bodyBytes: 4_096,
      answers: {
        204: {
          description: 'The session has started.',
          headers: { 'Set-Cookie': 'HttpOnly, SameSite=Strict; 12 hours' },
        },
      },
      handle: async (c, { body }) => {
        const value = await gate.logIn(c.req.raw, c.env.info, body.token)
        return noContent({ 'set-cookie': sessionCookie(value, c.env.basePath, isSecure(c.env.info)) })
      },
    }),
    route({
      method: 'delete',
      path: '/v1/session',
      id: 'logOut',
      tag: 'session',
      summary: 'Ends a browser session.',
      answers: {
        204: { description: 'The session has ended.', headers: { 'Set-Cookie': 'deletes the cookie' } },
      },
      handle: async (c) => {
        gate.checkPage(c.req.raw)
        const cookie = sessionOf(c.req.raw)
        if (cookie !== undefined) await gate.logOut(cookie)
        return noContent({ 'set-cookie': endedCookie(c.env.basePath, isSecure(c.env.info)) })
      },
    }),
  ]
}

function isSecure({ secure = false }: RequestInfo): boolean {
  return secure
}
