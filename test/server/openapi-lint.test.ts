/** The OpenAPI document as generators of clients read it: what they cannot take is not in it. */
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { beforeAll, describe, expect, it } from 'vitest'
import { tokenAuthorise } from '../../src/server/index.js'
import { createTestBelfry } from '../../src/testing/index.js'
import { type CheckedServer, checkedServer } from './checked-server.js'

type Schema = Readonly<Record<string, unknown>>

interface WithBody {
  readonly operationId: string
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: { readonly $ref?: string } }>> }
}

let document: CheckedServer['document'] & Schema

beforeAll(async () => {
  const { belfry } = createTestBelfry()
  const server = await checkedServer(belfry, { authorise: tokenAuthorise(belfry.records) })
  document = server.document as typeof document
})

/** Every schema of the document with its place; the components themselves have a place without "/". */
function* schemasOf(value: unknown, place: string): Generator<readonly [place: string, schema: Schema]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [place, value as Schema]
  for (const [key, member] of Object.entries(value)) yield* schemasOf(member, `${place}/${key}`)
}

function places(isBad: (schema: Schema, place: string) => boolean): string[] {
  const { schemas, responses } = document.components
  const all = [
    ...Object.entries(schemas).flatMap(([name, schema]) => [...schemasOf(schema, name)]),
    ...schemasOf(document.paths, 'paths/'),
    ...schemasOf(responses, 'responses/'),
  ]
  return all.filter(([place, schema]) => isBad(schema, place)).map(([place]) => place)
}

it('has no warnings of a linter', { timeout: 60_000 }, async () => {
  const config = await createConfig({
    extends: ['recommended'],
    rules: {
      // A service on this machine has no other URL than its own.
      'no-server-example.com': 'off',
      'operation-4xx-response': 'error',
      'no-invalid-schema-examples': 'error',
    },
  })
  const problems = await lintFromString({ source: JSON.stringify(document), config })
  expect(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`)).toEqual([])
})

describe('generators find', () => {
  it('one type in each schema, and no constant that is not text', () => {
    expect(places(({ type }, place) => Array.isArray(type) && !place.endsWith('/properties'))).toEqual([])
    expect(places((schema) => 'const' in schema)).toEqual([])
  })

  it('integers that say when they need 64 bits', () => {
    const isUnsaid = ({ type, format, maximum }: Schema) =>
      type === 'integer' && format !== 'int64' && !(Number(maximum) < 2 ** 31)
    expect(places(isUnsaid)).toEqual([])
    expect(places(({ type, format }) => type === 'number' && format !== 'double')).toEqual([])
    expect(places(({ minimum, maximum }) => [minimum, maximum].some((at) => Math.abs(Number(at)) >= 2 ** 53))).toEqual(
      [],
    )
    expect(document.components.schemas.Lease).toMatchObject({ properties: { token: { format: 'int64' } } })
  })

  it('a name for every object and every enum', () => {
    const isAnonymous = ({ type, properties, enum: values }: Schema, place: string) =>
      place.includes('/') && ((type === 'object' && properties !== undefined) || Array.isArray(values))
    // The kind of a union's member has one value, and so has the header of a repetition.
    const isTag = (place: string) => /\/properties\/(kind|event)$|\/Idempotency-Replayed\/schema$/.test(place)
    expect(places(isAnonymous).filter((place) => !isTag(place))).toEqual([])
  })

  it('names that collide with no constructor, and with no type that languages have', () => {
    const names = Object.keys(document.components.schemas)
    const taken =
      /^New|^(?:Duration|Instant|Time|Date|Error|Exception|Object|String|List|Map|Type|Record|Process|Thread)$/
    expect(names.filter((name) => taken.test(name))).toEqual([])
    const folded = names.map((name) => name.toLowerCase())
    expect(new Set(folded).size).toBe(folded.length)
  })
})

it('gives an example of every body, which fits its schema', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: true })
  addFormats.default(ajv)
  ajv.addSchema({ $id: 'doc', components: document.components })
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path)) as readonly WithBody[]
  const bodies = new Set(
    operations.flatMap(({ operationId, requestBody }) => {
      const media = requestBody?.content['application/json']
      return media === undefined ? [] : [media.schema.$ref ?? `${operationId} has a body without a name`]
    }),
  )
  expect(bodies.size).toBeGreaterThan(10)
  for (const reference of bodies) {
    const schema = document.components.schemas[reference.split('/').at(-1) ?? ''] as Schema | undefined
    const examples = (schema?.examples ?? []) as unknown[]
    expect(examples.length, reference).toBeGreaterThan(0)
    const validate = ajv.compile({ $ref: reference.replace('#', 'doc#') })
    for (const example of examples) expect(validate(example), `${reference}: ${JSON.stringify(example)}`).toBe(true)
  }
})

it('describes the login that the service has', async () => {
  const { belfry } = createTestBelfry()
  const securityOf = async (authorise?: Parameters<typeof checkedServer>[1]) =>
    ((await checkedServer(belfry, authorise)).document as unknown as { security: unknown }).security
  expect(document.security).toEqual([{ token: [] }, { session: [] }])
  expect(await securityOf()).toEqual([{}])
  expect(await securityOf({ authorise: async () => ({ name: 'a', role: 'admin' }) })).toEqual([{ app: [] }])
  const open = tokenAuthorise(belfry.records, { open: true })
  expect(await securityOf({ authorise: open })).toEqual([{ token: [] }, { session: [] }, {}])
})
