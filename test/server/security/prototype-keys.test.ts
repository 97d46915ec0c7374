/** The key `__proto__` could change what objects inherit. It is refused in every body, however it is written. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { bearer, outcome, type SecuredService, securedService } from './secured-service.js'

let service: SecuredService
let headers: Record<string, string>

beforeEach(async () => {
  service = await securedService()
  headers = bearer(await service.token({ role: 'admin' }))
  await service.belfry.schedules.put('s', { every: '1h', job: 'x' })
})

afterEach(() => service.close())

const SPELLINGS = [
  '__proto__',
  '\\u005f_proto__',
  '__pr\\u006fto__',
  '\\u005F\\u005f\\u0070roto\\u005f_',
  '__proto\\u005f\\u005F',
]

const BODIES: readonly (readonly [method: string, path: string, body: (key: string) => string])[] = [
  ['POST', '/v1/schedules', (key) => `{"id":"a","every":"1h","job":"x","payload":{"${key}":{"admin":true}}}`],
  ['POST', '/v1/schedules', (key) => `{"id":"a","every":"1h","job":"x","${key}":{"admin":true}}`],
  ['PUT', '/v1/schedules/a', (key) => `{"every":"1h","job":"x","payload":[[{"${key}":1}]]}`],
  ['PATCH', '/v1/schedules/s', (key) => `{"${key}":{"priority":1}}`],
  ['POST', '/v1/schedules:apply', (key) => `{"schedules":{"${key}":{"every":"1h","job":"x"}}}`],
  ['POST', '/v1/schedules:apply', (key) => `{"schedules":{"a":{"every":"1h","job":"x","toOptions":{"${key}":1}}}}`],
  ['POST', '/v1/schedules:apply', (key) => `{"${key}":{"prune":true},"schedules":{}}`],
  ['POST', '/v1/schedules:preview', (key) => `{"schedule":{"every":"1h","${key}":{}}}`],
  ['POST', '/v1/schedules/s/trigger', (key) => `{"payload":{"a":{"${key}":{}}}}`],
  ['POST', '/v1/jobs/x/runs', (key) => `{"payload":{"${key}":{}}}`],
  ['POST', '/v1/runs:cancel', (key) => `{"${key}":{"limit":1}}`],
  ['POST', '/v1/operations', (key) => `{"kind":"cancel-runs","${key}":{}}`],
  ['PUT', '/v1/locks/a', (key) => `{"${key}":{}}`],
]

it.each(BODIES)('%s %s refuses it', async (method, path, body) => {
  for (const spelling of SPELLINGS) {
    const response = await service.ask(path, { method, headers, body: body(spelling) })
    expect(await outcome(response), spelling).toBe('422 PAYLOAD_INVALID')
  }
  expect({}).not.toHaveProperty('admin')
  expect((await service.belfry.schedules.list()).items.map(({ id }) => id)).toEqual(['s'])
})

it('an import refuses the line', async () => {
  const lines = SPELLINGS.map((key) => `{"id":"a","every":"1h","job":"x","payload":{"${key}":1}}\n`).join('')
  const type = { ...headers, 'content-type': 'application/x-ndjson' }
  const response = await service.ask('/v1/schedules:import', { method: 'POST', headers: type, body: lines })
  expect(await response.json()).toMatchObject({ created: 0, refused: SPELLINGS.length })
})

it('the library refuses it, too', async () => {
  const { schedules } = service.belfry
  const payload: unknown = JSON.parse('{"a":{"__proto__":{"admin":true}}}')
  await expect(schedules.put('a', { every: '1h', job: 'x', payload })).rejects.toThrow('__proto__')
  await expect(schedules.apply({ a: { every: '1h', job: 'x', payload } })).rejects.toThrow('__proto__')
  await expect(service.belfry.enqueue('x', payload)).rejects.toThrow('__proto__')
})
