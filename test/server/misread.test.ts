/** Requests that could be read in two ways are refused, and the refusal says where and what to send instead. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestBelfry, type TestBelfry } from '../../src/testing/index.js'
import { ScriptedSink } from '../sinks/scripted-sink.js'
import { type Answered, type CheckedServer, checkedServer } from './checked-server.js'

let kit: TestBelfry
let server: CheckedServer
let ask: CheckedServer['ask']

const HOURLY = { every: '1h', job: 'ok' }

beforeEach(async () => {
  kit = createTestBelfry({ now: '2026-01-01T08:00:00Z', sinks: { orders: new ScriptedSink() } })
  kit.belfry.job('ok', { run: ({ payload }) => payload })
  await kit.belfry.start()
  server = await checkedServer(kit.belfry, { authorise: async () => ({ name: 'test', role: 'admin' }) })
  ask = server.ask
  await send('PUT', '/v1/schedules/a', HOURLY)
})

afterEach(async () => {
  await server.close()
  await kit.belfry.stop()
})

function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answered> {
  return ask(path, { method, body, headers })
}

/** The pointers of a refusal. */
function refused(answer: Answered, status: number): string[] {
  expect([answer.status, answer.body]).toMatchObject([status, { errors: [{}] }])
  return answer.body.errors.map(({ pointer }: { pointer: string }) => pointer)
}

describe('a change of many runs', () => {
  it.each(['cancel', 'retry'])('needs a filter or all: true: %s', async (action) => {
    const many = (body: unknown) => send('POST', `/v1/runs:${action}`, body)
    const { body } = await send('POST', '/v1/jobs/ok/runs', { in: '1h' })
    for (const empty of [
      {},
      { schedule: undefined },
      { limit: 5 },
      { state: [action === 'cancel' ? 'ready' : 'failed'] },
    ]) {
      const answer = await many(empty)
      expect(refused(answer, 422)).toEqual([''])
      expect(answer.body.detail).toContain('"all": true')
    }
    expect(refused(await many({ all: false }), 422)).toEqual(['/all'])
    expect(refused(await many({ all: true, job: 'ok' }), 422)).toEqual(['/all'])
    expect((await kit.belfry.runs.get(body.runId))?.state).toBe('ready')
    expect((await many({ all: true })).status).toBe(200)
    expect((await many({ job: 'ok' })).status).toBe(200)
  })

  it.each(['cancel-runs', 'retry-runs'])('needs the same as an operation: %s', async (kind) => {
    expect(refused(await send('POST', '/v1/operations', { kind }), 422)).toEqual([''])
    expect((await send('POST', '/v1/operations', { kind, all: true })).status).toBe(202)
  })

  it('names the states that it can change', async () => {
    const answer = await send('POST', '/v1/runs:cancel', { job: 'ok', state: ['ready', 'failed'] })
    expect(refused(answer, 422)).toEqual(['/state/1'])
    expect(refused(await send('POST', '/v1/runs:retry', { job: 'ok', state: ['ready'] }), 422)).toEqual(['/state/0'])
  })
})

describe('a number that a double cannot hold', () => {
  it.each([
    ['{"payload":{"ids":[1,1234567890123456789]}}', '/payload/ids/1'],
    ['{"payload":-9007199254740993}', '/payload'],
    ['{"payload":{"a/b":{"":1e999}}}', '/payload/a~1b/'],
    ['{"payload":"7,8]","priority":0,"x":[{"y":"\\"\\\\"},[12345678901234567.891]]}', '/x/1/0'],
  ])('is refused: %s', async (body, pointer) => {
    const answer = await send('POST', '/v1/jobs/ok/runs', body)
    expect(refused(answer, 422)).toEqual([pointer])
    expect(answer.body).toMatchObject({ code: 'NUMBER_INEXACT', hint: expect.stringContaining('text') })
  })

  it('is refused in a line of an import', async () => {
    const line = '{"id":"x","every":"1h","job":"ok","payload":{"order":1234567890123456789}}\n'
    const { body } = await send('POST', '/v1/schedules:import', line, { 'content-type': 'application/x-ndjson' })
    expect(body).toMatchObject({ created: 0, errors: [{ line: 1, code: 'NUMBER_INEXACT' }] })
    expect(body.errors[0].errors).toMatchObject([{ pointer: '/payload/order' }])
  })

  it('is not mistaken for one that it can hold', async () => {
    const exact =
      '[9007199254740991,-9007199254740992,12345678901234567000,1e22,0.1,0.10000000000000001,5e-324,1.7976931348623157e308,1E2,100000000000000000000.000]'
    const { status, body } = await send('POST', '/v1/jobs/ok/runs', `{"payload":${exact},"wait":"5s"}`)
    expect([status, body.run.payload]).toEqual([200, JSON.parse(exact)])
    expect((await send('POST', '/v1/jobs/ok/runs', '{"payload":"1234567890123456789"}')).status).toBe(202)
  })
})

describe('a precondition', () => {
  it.each(['pause', 'resume', 'trigger', 'backfill'])('that a route cannot check is refused: %s', async (action) => {
    const answer = await send('POST', `/v1/schedules/a/${action}`, {}, { 'if-match': '"1"' })
    expect(refused(answer, 400)).toEqual(['if-match'])
    expect((await kit.belfry.schedules.get('a'))?.state).toBe('active')
  })

  it('is checked by every route that documents it', async () => {
    const stale = { 'if-match': '"77"' }
    expect((await send('PUT', '/v1/schedules/a', { every: '2h', job: 'ok' }, stale)).status).toBe(412)
    expect((await send('PATCH', '/v1/schedules/a', { priority: 1 }, stale)).status).toBe(412)
    expect((await send('DELETE', '/v1/schedules/a', undefined, stale)).status).toBe(412)
    expect(refused(await send('PATCH', '/v1/schedules/a', { priority: 1 }, { 'if-none-match': '*' }), 400)).toEqual([
      'if-none-match',
    ])
    const date = { 'if-unmodified-since': 'Thu, 01 Jan 2026 00:00:00 GMT' }
    expect(refused(await send('PUT', '/v1/schedules/a', HOURLY, date), 400)).toEqual(['if-unmodified-since'])
  })
})

describe('an Idempotency-Key', () => {
  const POSTS: readonly [path: string, one: unknown, other: unknown][] = [
    ['/v1/schedules', { id: 'new', ...HOURLY }, HOURLY],
    ['/v1/schedules/a/pause', { note: 'x' }, { note: 'y' }],
    ['/v1/schedules/a/resume', {}, { note: 'y' }],
    ['/v1/schedules/a/trigger', {}, { payload: 1 }],
    [
      '/v1/schedules/a/backfill',
      { from: '2026-01-01T00:00:00Z', to: '2026-01-01T03:00:00Z' },
      { from: '2026-01-01T00:00:00Z', to: '2026-01-01T04:00:00Z' },
    ],
    ['/v1/schedules:apply', { schedules: { b: HOURLY } }, { schedules: {} }],
    ['/v1/runs:cancel', { job: 'ok' }, { all: true }],
    ['/v1/runs:retry', { job: 'ok' }, { all: true }],
    ['/v1/operations', { kind: 'pause-schedules', prefix: 'x' }, { kind: 'resume-schedules', prefix: 'x' }],
    ['/v1/jobs/ok/runs', {}, { payload: 1 }],
  ]

  it.each(POSTS)('makes a POST happen once: %s', async (path, one, other) => {
    const key = { 'idempotency-key': 'k-1' }
    const first = await send('POST', path, one, key)
    expect(first.status).toBeLessThan(300)
    const again = await send('POST', path, one, key)
    expect([again.status, again.body]).toEqual([first.status, first.body])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    const mismatch = await send('POST', path, other, key)
    expect([mismatch.status, mismatch.body.code]).toEqual([422, 'IDEMPOTENCY_MISMATCH'])
  })

  it('is described or refused by every POST', async () => {
    const posts = Object.entries(server.document.paths).filter(([, { post }]) => post !== undefined)
    expect(posts.length).toBeGreaterThan(12)
    for (const [path, { post }] of posts) {
      const { parameters } = post as unknown as { parameters: { name: string }[] }
      if (parameters.some(({ name }) => name === 'Idempotency-Key')) continue
      const type = { 'content-type': path.endsWith(':import') ? 'application/x-ndjson' : 'application/json' }
      const answer = await send('POST', path, '{"id":"a"}', { ...type, 'idempotency-key': 'k' })
      expect(refused(answer, 400), path).toEqual(['idempotency-key'])
    }
  })
})

describe('a duration or an instant', () => {
  it.each([
    ['PUT', '/v1/locks/x', { ttl: 30 }, '/ttl'],
    ['PUT', '/v1/locks/x', { ttl: '30s', wait: 5 }, '/wait'],
    ['PUT', '/v1/schedules/b', { every: 60, job: 'ok' }, '/every'],
    ['PUT', '/v1/schedules/b', { every: '1h', job: 'ok', missed: { policy: 'latest', within: 300 } }, '/missed/within'],
    ['POST', '/v1/jobs/ok/runs', { in: 90 }, '/in'],
    ['POST', '/v1/jobs/ok/runs', { at: 1_767_254_400 }, '/at'],
    ['POST', '/v1/jobs/ok/runs', { at: '1767254400' }, '/at'],
    ['PUT', '/v1/schedules/b', { at: ['2026-02-01T00:00:00Z', '1767254400'], job: 'ok' }, '/at/1'],
  ])('that looks like seconds is refused: %s %s %j', async (method, path, body, pointer) => {
    const answer = await send(method, path, body)
    expect(refused(answer, 422)).toEqual([pointer])
    expect(answer.body.detail).toMatch(/looks like|ISO 8601/)
  })

  it('is refused in a line of an import as well', async () => {
    const lines = ['{"id":"x","every":60,"job":"ok"}', '{"id":"y","at":"1767254400","job":"ok"}', '']
    const { body } = await send('POST', '/v1/schedules:import', lines.join('\n'), {
      'content-type': 'application/x-ndjson',
    })
    expect(body).toMatchObject({ created: 0, refused: 2 })
    expect(body.errors.map(({ errors }: { errors: object[] }) => errors)).toMatchObject([
      [{ pointer: '/every' }],
      [{ pointer: '/at' }],
    ])
  })

  it('is milliseconds as a number, in a query too', async () => {
    expect((await send('PUT', '/v1/locks/x', { ttl: 30_000 })).body.expiresAt).toBe('2026-01-01T08:00:30.000Z')
    const at = Date.parse('2026-01-01T08:00:00Z')
    expect((await ask(`/v1/schedules/a/explain?at=${at}`)).body.at).toBe('2026-01-01T08:00:00.000Z')
    expect(refused(await ask('/v1/schedules/a/explain?at=1767254400'), 400)).toEqual(['at'])
    expect(refused(await ask('/v1/runs?tick=1767254400'), 400)).toEqual(['tick'])
    expect(refused(await ask('/v1/runs?tick=2026-01-01'), 400)).toEqual(['tick'])
    const local = { from: '2026-01-01T07:00', to: '2026-01-01T08:00:00Z' }
    expect(refused(await send('POST', '/v1/schedules/a/backfill', local), 422)).toEqual(['/from'])
  })
})

describe('a query', () => {
  it.each(['1e2', '0x10', '', ' 5', '5.0', '+5', '0', '1001', '٣'])(
    'has limits in plain digits: limit=%s',
    async (limit) => {
      for (const path of ['/v1/schedules?', '/v1/runs?', '/v1/locks?', '/v1/audit?']) {
        expect(refused(await ask(`${path}limit=${encodeURIComponent(limit)}`), 400)).toEqual(['limit'])
      }
      const range = 'from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z'
      expect(refused(await ask(`/v1/schedules/a/ticks?${range}&limit=${encodeURIComponent(limit)}`), 400)).toEqual([
        'limit',
      ])
    },
  )

  it.each(['', '1e2', '0x10', '-1', '1.0', '9007199254740993'])(
    'has tokens in plain digits: token=%s',
    async (token) => {
      expect(refused(await send('DELETE', `/v1/locks/x?token=${token}`), 400)).toEqual(['token'])
    },
  )

  it('of another list is refused', async () => {
    await send('PUT', '/v1/schedules/b', HOURLY)
    const { nextCursor: cursor } = (await ask('/v1/schedules?limit=1')).body
    expect(cursor).toEqual(expect.any(String))
    for (const path of ['/v1/runs', '/v1/locks', '/v1/audit']) {
      expect(refused(await ask(`${path}?cursor=${cursor}`), 400)).toEqual(['cursor'])
    }
    expect(refused(await send('POST', '/v1/runs:cancel', { job: 'ok', cursor }), 400)).toEqual(['/cursor'])
  })
})

describe('a refusal says what and where', () => {
  it.each<[method: string, path: string, body: unknown, pointer: string, says: RegExp]>([
    ['PUT', '/v1/locks/x', { ttl: 0 }, '/ttl', /longer than 0/],
    ['PATCH', '/v1/locks/x', { token: 1, ttl: '0s' }, '/ttl', /longer than 0/],
    ['PUT', '/v1/locks/x', { wait: '2m' }, '/wait', /at most a minute/],
    ['POST', '/v1/jobs/ok/runs', { wait: '2m' }, '/wait', /at most a minute/],
    ['POST', '/v1/jobs/ok/runs', { in: '1h', at: '2026-02-01T00:00:00Z' }, '/in', /either/],
    ['POST', '/v1/jobs/ok/runs', { keyFor: '1h' }, '/keyFor', /key/],
    ['PUT', '/v1/schedules/b', { every: '1h', to: 'nowhere' }, '/to', /nowhere/],
    ['PUT', '/v1/schedules/b', { every: '1h' }, '', /job/],
    ['PUT', '/v1/schedules/b', { job: 'ok' }, '', /cron/],
    ['PUT', '/v1/schedules/b', { every: '1h', cron: '* * * * *', job: 'ok' }, '', /cron/],
    ['PUT', '/v1/schedules/b', { every: '0s', job: 'ok' }, '/every', /every/],
    ['PUT', '/v1/schedules/b', { ...HOURLY, priority: 1e9 }, '/priority', /priority/],
    ['PUT', '/v1/schedules/b', { ...HOURLY, times: 0 }, '/times', /1/],
    ['POST', '/v1/schedules:apply', { schedules: { '': HOURLY } }, '/schedules/', /0 characters/],
    ['POST', '/v1/schedules:apply', { schedules: { b: { every: '1h', to: 'nowhere' } } }, '/schedules/b/to', /nowhere/],
    ['POST', '/v1/schedules:apply', { schedules: {}, prune: true }, '/prefix', /prefix/],
    ['POST', '/v1/schedules:apply', { schedules: { b: HOURLY }, prefix: 'x/' }, '/schedules/b', /prefix/],
    ['POST', '/v1/schedules:preview', {}, '', /either/],
    ['POST', '/v1/schedules/a/backfill', { from: '2026-01-01T08:00:00Z', to: '2026-01-01T07:00:00Z' }, '/to', /before/],
    ['POST', '/v1/schedules/a/backfill', { from: '2026-01-01T08:00:00Z', to: '2027-01-01T08:00:00Z' }, '/to', /future/],
  ])('%s %s %j', async (method, path, body, pointer, says) => {
    const answer = await send(method, path, body)
    expect(refused(answer, 422)).toEqual([pointer])
    expect(answer.body.detail).toMatch(says)
    expect(answer.body.detail).not.toMatch(LIBRARY_CALL)
  })

  it('with the parameter of a range that cannot be', async () => {
    const ticks = (from: string, to: string) => ask(`/v1/schedules/a/ticks?from=${from}&to=${to}`)
    const backwards = await ticks('2026-01-02T00:00:00Z', '2026-01-01T00:00:00Z')
    expect(refused(backwards, 400)).toEqual(['to'])
  })
})

/** Names that only a program with the library knows. */
const LIBRARY_CALL = /\w\(\)|\bDate\b|\bcreate(?:Belfry|Server)\b/

it('is named by its id in the answer and in its problem', async () => {
  const named = await ask('/v1/runs/none', { headers: { 'x-request-id': 'order-7' } })
  expect([named.headers.get('x-request-id'), named.body.requestId]).toEqual(['order-7', 'order-7'])
  const other = await ask('/v1/stats', { headers: { 'x-request-id': 'x'.repeat(129) } })
  expect(other.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
})
