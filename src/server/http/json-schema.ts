/** Shapes as JSON Schema, in the form that generators of clients in other languages understand. */
import { z } from 'zod'

export type Schema = Record<string, unknown>
export type Schemas = Record<string, Schema>

/** A shape as JSON Schema. Shapes with an id become components, and are referenced. */
export function schemaOf(shape: z.ZodType, io: 'input' | 'output', schemas: Schemas): Schema {
  const made: unknown = z.toJSONSchema(z.object({ it: shape }), { io, target: 'draft-2020-12', reused: 'inline' })
  const { $defs = {}, properties } = plain(made) as { $defs?: Schemas; properties: { it: Schema } }
  for (const [name, { id: _, bodies, ...schema }] of Object.entries($defs)) {
    // zod leaves out `examples` of shapes that read their input, so bodies have theirs under another name.
    schemas[name] = bodies === undefined ? schema : { ...schema, examples: bodies }
  }
  return properties.it
}

/** The largest integer that generators hold in 32 bits. */
const MAX_32_BITS = 2 ** 31 - 1

/**
 * Rewrites what generators misread, in every schema of a document:
 *
 *     { "type": ["string", "null"] }                 →  { "anyOf": [{ "type": "string" }, { "type": "null" }] }
 *     { "type": "integer", "maximum": 2^53 - 1 }     →  { "type": "integer", "format": "int64" }
 *     { "type": "boolean", "const": true }           →  { "type": "boolean" }
 *     { "$ref": "#/$defs/Run" }                      →  { "$ref": "#/components/schemas/Run" }
 */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([key, member]) => [key, KEPT.includes(key) ? member : plain(member)])
  return plainSchema(Object.fromEntries(members))
}

/** Keywords whose values are data, not schemas. */
const KEPT = ['examples', 'bodies', 'example', 'default', 'enum']

function plainSchema({ $ref, ...schema }: Schema): Schema {
  if (typeof $ref === 'string') return { $ref: $ref.replace('#/$defs/', '#/components/schemas/'), ...schema }
  const { type } = schema
  if (Array.isArray(type)) return anyType(schema, type)
  if (type === 'integer') return plainInteger(schema)
  if (type === 'number') return { ...schema, format: 'double' }
  if ('const' in schema) return withoutConst(schema)
  if (Array.isArray(schema.anyOf)) return plainUnion(schema, schema.anyOf as readonly Schema[])
  return schema
}

function anyType({ type: _, description, examples, ...rest }: Schema, types: readonly unknown[]): Schema {
  return {
    ...(description === undefined ? {} : { description }),
    ...(examples === undefined ? {} : { examples }),
    anyOf: types.map((type) => plainSchema(type === 'null' ? { type } : { type, ...rest })),
  }
}

const TYPED = ['type', '$ref', 'anyOf', 'oneOf', 'allOf', 'enum']

/** A union with a member that allows any JSON is that member. */
function plainUnion({ anyOf: _, ...rest }: Schema, members: readonly Schema[]): Schema {
  const any = members.find((member) => !TYPED.some((keyword) => keyword in member))
  return any === undefined ? { ...rest, anyOf: members } : { ...any, ...rest }
}

function plainInteger({ minimum, maximum, ...rest }: Schema): Schema {
  const isLarge = maximum === undefined || Number(maximum) > MAX_32_BITS
  return {
    ...rest,
    ...(isLarge ? { format: 'int64' } : {}),
    ...(minimum === undefined || Number(minimum) === Number.MIN_SAFE_INTEGER ? {} : { minimum }),
    ...(maximum === undefined || Number(maximum) === Number.MAX_SAFE_INTEGER ? {} : { maximum }),
  }
}

function withoutConst({ const: value, ...rest }: Schema): Schema {
  return typeof value === 'boolean' ? rest : { ...rest, enum: [value] }
}
