/** Generates requests of a malicious or careless client: built by the OpenAPI document, then distorted. */
import fc from 'fast-check'
import type { CheckedServer } from './checked-server.js'

export interface OddRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

const TRICKS = [
  ...[
    'a',
    'team/a',
    'x',
    '',
    '.',
    '..',
    '../..',
    '%2e%2e',
    '__proto__',
    'constructor',
    'toString',
    'null',
    '*',
    ':',
    '~',
  ],
  ...['\u0000', '\u2028', '\ud800', '💥', 'é', ' ', ' x ', '%', '%00', '%ff', 'a%2Fb', '"', "'", '\\', '<script>'],
  ...['x'.repeat(255), 'x'.repeat(256), 'x'.repeat(5_000), '0', '-1', '1e999', '9007199254740993', 'NaN', 'Infinity'],
  ...[
    '2026-01-01T00:00:00Z',
    '2026-02-30',
    '1',
    '99999999999999',
    "' or 1=1 --",
    '$1',
    '{{7*7}}',
    '\r\nset-cookie: a=b',
  ],
] as const

const ANYTHING = fc.oneof(
  fc.constantFrom(...TRICKS),
  fc.constantFrom<unknown>(null, true, 0, -1, 0.5, 1e308, -1e308, 2 ** 53, [], {}, [[]], [null], { a: 1 }),
  fc.jsonValue({ maxDepth: 4 }),
)

/** Likely values of a field, so that requests pass the first check. */
const LIKELY: Readonly<Record<string, readonly unknown[]>> = {
  id: ['a', 'b', 'team/a'],
  cron: [
    '* * * * *',
    '0 9 * * 1-5',
    '@daily',
    '@every 1h',
    '0 0 31 2 *',
    '* '.repeat(200),
    '*/0 * * * *',
    '@at 2030-01-01',
  ],
  every: ['1h', 1_000, '1s', '1ms', -5, 'P1Y', '999999999d', 1e300],
  at: ['2030-01-01T00:00:00Z', ['2030-01-01T00:00:00Z'], [], 0, 1e15, ['x']],
  timezone: ['UTC', 'Europe/Berlin', 'Mars/Base', '../../etc/passwd'],
  dst: [{ gap: 'skip' }, { gap: 'x' }, { repeat: 'both', a: 1 }],
  job: ['a', 'b', { name: 'a' }],
  to: ['kafka'],
  payload: [{ a: 1 }, 'x'.repeat(1_000), JSON.parse('{"__proto__":{"a":1}}')],
  overlap: ['allow', 'skip', 'queue-one', 'cancel-running'],
  missed: ['latest', { policy: 'all', max: 5 }, { policy: 'skip', within: '1h' }, { policy: 'all', max: 1e9 }],
  schedule: [{ every: '1h' }, 'a', { cron: '* * * * *', job: 'a' }],
  schedules: [
    { a: { every: '1h', job: 'a' } },
    { a: { every: '1h' } },
    JSON.parse('{"__proto__":{"every":"1h"}}'),
    { '..': {} },
  ],
  ttl: ['10s', 0, 1, '100000d'],
  wait: [0, 1, '50ms', '1h'],
  token: [1, 1e15, 2 ** 53, -1, 1.5],
  permits: [1, 2, 0, 1e9],
  from: ['2026-01-01T00:00:00Z', 0, '0001-01-01T00:00:00Z'],
  to_: ['2026-01-02T00:00:00Z'],
  limit: [1, 2, 1_000, 0, 1e9],
  state: ['failed', 'failed,ready', 'paused', ',', ['failed'], ['ready', 'running'], [], ['x']],
  cursor: ['YQ', 'YS8x', '!!', 'MTIz'],
  prefix: ['', 'a', 'team/'],
  times: [1, 5, 1e12],
  priority: [0, 5, 1e7, -0],
  name: ['n', '2026'],
}

function likely(name: string): readonly unknown[] | undefined {
  return Object.hasOwn(LIKELY, name) ? LIKELY[name] : undefined
}

/** Replaces lone surrogates, which have no encoding. */
function encoded(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString())
}

const RAW_BODIES = [
  ...[
    '',
    ' ',
    '{',
    '}',
    'null',
    '"x"',
    '[]',
    '[1,2',
    '{"a":1e999}',
    '\u0000',
    '{"a":"\\ud800"}',
    'undefined',
    '{"a":1,}',
  ],
  ...['['.repeat(50_000), `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`, '{"__proto__":{"admin":true}}'],
  ...['{"\\u005f_proto__":1}', `{"payload":"${'x'.repeat(300_000)}"}`, '{"a":1}{"b":2}', '\ufeff{}'],
  ...['{"id":"l","every":"1h","job":"a"}\n{"id":"m"', '{"id":"l","every":"1h","job":"a"}\n'.repeat(20)],
]

export function oddRequests(document: CheckedServer['document']): fc.Arbitrary<OddRequest> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  return fc.constantFrom(...operations).chain(({ path, method, operation }) => {
    const { parameters = [], requestBody } = operation as Described
    const names = parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name)
    const schema = requestBody?.content['application/json']?.schema
    const fields = schema === undefined ? [] : fieldsOf(schema, document.components.schemas)
    return fc
      .record({
        method: fc.oneof({ weight: 9, arbitrary: fc.constant(method) }, { weight: 1, arbitrary: METHODS }),
        path: pathsOf(path),
        query: queriesOf(names),
        headers: HEADERS,
        body: fc.oneof(
          { weight: 4, arbitrary: bodiesOf(fields) },
          { weight: 1, arbitrary: fc.constantFrom(...RAW_BODIES) },
        ),
      })
      .map(({ query, body, ...rest }) => ({
        ...rest,
        path: `${rest.path}${query}`,
        ...(rest.method === 'GET' || rest.method === 'HEAD' ? {} : { body }),
      }))
  })
}

interface Described {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> }
}

interface Schema {
  readonly $ref?: string
  readonly properties?: Record<string, unknown>
}

function fieldsOf(schema: Schema, schemas: Readonly<Record<string, Schema>>): string[] {
  const named = schema.$ref === undefined ? schema : (schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {})
  return Object.keys(named.properties ?? {})
}

const METHODS = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS')

const SEGMENTS = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('a', 'b', 'team%2Fa', '1', '2') },
  { weight: 2, arbitrary: fc.constantFrom(...TRICKS).map((trick) => encoded(trick)) },
  // Unencoded, without the characters that would end the path.
  { weight: 1, arbitrary: fc.constantFrom(...TRICKS).map((trick) => trick.replaceAll(/[?#\s\p{Cc}]/gu, '')) },
)

function pathsOf(path: string): fc.Arbitrary<string> {
  return fc.tuple(SEGMENTS, SEGMENTS).map(([one, other]) => path.replace(/\{\w+\}/, one).replace(/\{\w+\}/, other))
}

function queriesOf(names: readonly string[]): fc.Arbitrary<string> {
  const one = fc
    .constantFrom(...names, 'stranger', '__proto__')
    .chain((name) =>
      fc
        .oneof(fc.constantFrom(...(likely(name) ?? ['1'])), fc.constantFrom(...TRICKS))
        .map((value) => [name, value] as const),
    )
  return fc.array(one, { maxLength: 4 }).map((pairs) => {
    const text = pairs.map(([name, value]) => `${name}=${encoded(String(value))}`).join('&')
    return text === '' ? '' : `?${text}`
  })
}

const HEADERS: fc.Arbitrary<Record<string, string>> = fc.record(
  {
    'content-type': fc.constantFrom(
      'application/json',
      'application/json',
      'application/x-ndjson',
      'text/plain',
      'a',
      '',
    ),
    'if-match': fc.constantFrom('*', '"1"', '"x"', 'W/"2"', '"1","2"', '""', '"99999999999999999999"'),
    'if-none-match': fc.constantFrom('*', '"1"', ''),
    'idempotency-key': fc.constantFrom('k', '', ' ', 'x'.repeat(300), 'é'),
    'last-event-id': fc.constantFrom('', '1', 'x', '9'.repeat(30)),
    'content-length': fc.constantFrom('0', '99999999999', '-1', 'x'),
    accept: fc.constantFrom('*/*', 'text/html', ''),
  },
  { requiredKeys: ['content-type'] },
)

function bodiesOf(fields: readonly string[]): fc.Arbitrary<string> {
  const one = fc
    .constantFrom(...fields, 'stranger', 'constructor')
    .chain((name) =>
      fc
        .oneof(
          { weight: 3, arbitrary: fc.constantFrom(...(likely(name) ?? [1, 'x'])) },
          { weight: 1, arbitrary: ANYTHING },
        )
        .map((value) => [name, value] as const),
    )
  return fc
    .uniqueArray(one, { maxLength: 6, selector: ([name]) => name })
    .map((pairs) => JSON.stringify(Object.fromEntries(pairs)))
}
