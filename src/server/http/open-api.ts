/** The OpenAPI 3.1 document, derived from the table of routes and their shapes. */
import type { z } from 'zod'
import { LIMITS } from '../../core/defaults.js'
import { SESSION_COOKIE } from '../security/sessions.js'
import { NAME_PATTERN } from '../shapes/fields.js'
import { type Schema, type Schemas, schemaOf } from './json-schema.js'
import { PROBLEM, problemAnswers, refusalsOf } from './problem-answers.js'
import type { Answer, Route } from './route.js'

/** How callers log in: with Belfry's tokens, as the host app decides, or not at all. */
export type Login = 'tokens' | 'tokens or none' | 'own' | 'none'

const TAGS: Readonly<Record<string, string>> = {
  schedules: 'What runs when: one schedule, many at once, and their past and coming ticks.',
  runs: 'What has run, runs, or is about to, with its outcome.',
  operations: 'Work that takes longer than a request should.',
  jobs: 'Jobs that instances know, and runs of them without a schedule.',
  locks: 'Exclusive leases with fencing tokens.',
  store: 'The whole store: its instances, numbers, problems and freeze.',
  events: 'What happens, as a stream.',
  service: 'This process, and who changed what.',
  session: 'Who is asking, and sessions of browsers.',
}

export function openApi(routes: readonly Route[], basePath: string, login: Login): Schema {
  const schemas: Schemas = {}
  const paths: Record<string, Schema> = {}
  for (const one of routes) paths[one.path] = { ...paths[one.path], [one.method]: operation(one, schemas) }
  const responses = problemAnswers(routes, schemas)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Belfry',
      version: 'v1',
      description:
        'Schedules, runs and locks that many programs share. Lists come in pages; problems carry a stable code.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: basePath === '' ? '/' : basePath }],
    security: securityOf(login),
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name, description: TAGS[name] })),
    paths,
    components: { schemas, responses, ...schemesOf(login) },
  }
}

function securityOf(login: Login): readonly Schema[] {
  if (login === 'none') return [{}]
  if (login === 'own') return [{ app: [] }]
  return [{ token: [] }, { session: [] }, ...(login === 'tokens' ? [] : [{}])]
}

function schemesOf(login: Login): Schema {
  if (login === 'none') return {}
  const app = { type: 'http', scheme: 'bearer', description: 'The login of the app that mounts this API decides.' }
  if (login === 'own') return { securitySchemes: { app } }
  return {
    securitySchemes: {
      token: { type: 'http', scheme: 'bearer', description: 'A token of `belfry token create`.' },
      session: {
        ...{ type: 'apiKey', in: 'cookie', name: SESSION_COOKIE },
        description: 'The session of a browser, which `POST /v1/session` starts.',
      },
    },
  }
}

function operation(one: Route, schemas: Schemas): Schema {
  const { id, tag, summary, answers, role } = one
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(role === undefined ? { security: [] } : { description: `Needs the role ${role}.`, 'x-role': role }),
    parameters: [...pathParameters(one.path), ...queryParameters(one, schemas), ...headerParameters(one)],
    ...requestBody(one, schemas),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, answer]) => [status, response(one, answer, schemas)]),
      ),
      ...Object.fromEntries(
        refusalsOf(one).map((status) => [status, { $ref: `#/components/responses/${PROBLEM[status]}` }]),
      ),
      default: { $ref: '#/components/responses/Problem' },
    },
  }
}

function pathParameters(path: string): Schema[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    description: 'One percent-encoded segment: a "/" in it is "%2F".',
    schema: { type: 'string', minLength: 1, maxLength: LIMITS.nameLength, pattern: NAME_PATTERN },
  }))
}

function queryParameters({ query }: Route, schemas: Schemas): Schema[] {
  if (query === undefined) return []
  const { properties = {}, required = [] } = schemaOf(query, 'input', schemas) as {
    properties?: Record<string, Schema>
    required?: readonly string[]
  }
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema,
  }))
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'A request repeated with the same key takes effect once, and gets the same answer for a day.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' },
}

function headerParameters({ headers = {}, idempotent }: Route): Schema[] {
  const own = Object.entries(headers).map(([name, description]) => ({
    ...{ name, in: 'header', description, schema: { type: 'string' } },
  }))
  return idempotent ? [...own, IDEMPOTENCY_KEY] : own
}

function requestBody({ body, optionalBody, stream }: Route, schemas: Schemas): Schema {
  if (stream !== undefined) {
    const { type, description, line } = stream
    return {
      requestBody: { required: true, description, content: { [type]: { schema: linesOf(line, type, schemas) } } },
    }
  }
  if (body === undefined) return {}
  const schema = schemaOf(body, 'input', schemas)
  return { requestBody: { required: !optionalBody, content: { 'application/json': { schema } } } }
}

/** Text of lines or events, each of which has a shape. */
function linesOf(line: z.ZodType, type: string, schemas: Schemas): Schema {
  return { type: 'string', contentMediaType: type, contentSchema: schemaOf(line, 'input', schemas) }
}

function response({ idempotent }: Route, answer: Answer, schemas: Schemas): Schema {
  const { description, schema, type = 'application/json', headers = {}, line, links } = answer
  const replayed = { description: 'Present in the answer to a repetition.', schema: { type: 'string', enum: ['true'] } }
  const all = {
    ...Object.fromEntries(
      Object.entries(headers).map(([name, says]) => [
        name,
        { required: true, description: says, schema: { type: 'string' } },
      ]),
    ),
    ...(idempotent ? { 'Idempotency-Replayed': replayed } : {}),
  }
  const shown = line === undefined ? schema && schemaOf(schema, 'output', schemas) : linesOf(line, type, schemas)
  return {
    description,
    ...(Object.keys(all).length === 0 ? {} : { headers: all }),
    ...(shown === undefined ? {} : { content: { [type]: { schema: shown } } }),
    ...(links === undefined ? {} : { links }),
  }
}
