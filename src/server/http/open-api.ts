/** The OpenAPI 3.1 document, derived from the table of routes and their shapes. */
import { z } from 'zod'
import type { Answer, Route } from './route.js'

type Schema = Record<string, unknown>
type Schemas = Record<string, Schema>

const problemShape = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.string().meta({ description: 'Stable: match on this.' }),
    detail: z.string(),
    hint: z.string().optional(),
    errors: z
      .array(z.strictObject({ pointer: z.string(), message: z.string(), code: z.string().optional() }))
      .optional()
      .meta({ description: 'What is wrong: a JSON pointer into the body, or the name of a parameter or header.' }),
    instance: z.string().optional(),
  })
  .meta({ id: 'Problem' })

const PROBLEM: Answer = { description: 'A problem.', schema: problemShape, type: 'application/problem+json' }

export function openApi(routes: readonly Route[], basePath: string): Schema {
  const schemas: Schemas = {}
  const paths: Record<string, Schema> = {}
  for (const one of routes) paths[one.path] = { ...paths[one.path], [one.method]: operation(one, schemas) }
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
    security: [{ token: [] }, {}],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas,
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
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
      ...Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, response(answer, schemas)])),
      default: response(PROBLEM, schemas),
    },
  }
}

function pathParameters(path: string): Schema[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    description: 'One percent-encoded segment: a "/" in it is "%2F".',
    schema: { type: 'string' },
  }))
}

function queryParameters({ query }: Route, schemas: Schemas): Schema[] {
  if (query === undefined) return []
  const { properties = {}, required = [] } = schemaOf(query, 'input', schemas) as {
    properties?: Record<string, Schema>
    required?: readonly string[]
  }
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }))
}

function headerParameters({ headers = {}, idempotent }: Route): Schema[] {
  const key = {
    'Idempotency-Key': 'A request repeated with the same key takes effect once, and gets the same answer for a day.',
  }
  return Object.entries({ ...headers, ...(idempotent ? key : {}) }).map(([name, description]) => ({
    ...{ name, in: 'header', description, schema: { type: 'string' } },
  }))
}

function requestBody({ body, optionalBody, stream }: Route, schemas: Schemas): Schema {
  if (stream !== undefined) {
    const { type, description } = stream
    return { requestBody: { required: true, description, content: { [type]: { schema: { type: 'string' } } } } }
  }
  if (body === undefined) return {}
  const schema = schemaOf(body, 'input', schemas)
  return { requestBody: { required: !optionalBody, content: { 'application/json': { schema } } } }
}

function response({ description, schema, type = 'application/json', headers }: Answer, schemas: Schemas): Schema {
  const described = Object.entries(headers ?? {}).map(([name, says]) => [
    name,
    { description: says, schema: { type: 'string' } },
  ])
  return {
    description,
    ...(described.length === 0 ? {} : { headers: Object.fromEntries(described) }),
    ...(schema === undefined ? {} : { content: { [type]: { schema: schemaOf(schema, 'output', schemas) } } }),
  }
}

/** A shape as JSON Schema. Shapes with an id become components, and are referenced. */
function schemaOf(shape: z.ZodType, io: 'input' | 'output', schemas: Schemas): Schema {
  const made: unknown = z.toJSONSchema(z.object({ it: shape }), { io, target: 'draft-2020-12', reused: 'inline' })
  const { $defs = {}, properties } = withReferences(made) as { $defs?: Schemas; properties: { it: Schema } }
  for (const [name, { id: _, ...schema }] of Object.entries($defs)) schemas[name] = schema
  return properties.it
}

function withReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withReferences)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      key === '$ref' && typeof member === 'string'
        ? member.replace('#/$defs/', '#/components/schemas/')
        : withReferences(member),
    ]),
  )
}
