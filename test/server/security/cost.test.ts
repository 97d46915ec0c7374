/** Requests that cost much more than they look: each must take little CPU time, and none may block the event loop. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../../src/belfry.js'
import { silentLogger } from '../../../src/core/logger.js'
import { createServer, type ServerOptions } from '../../../src/server/index.js'
import type { Caller } from '../../../src/server/security/caller.js'
import { memory } from '../../../src/stores/memory/index.js'
import { outcome } from './secured-service.js'

const OPERATOR: Caller = { name: 'eve', role: 'operator' }
const MEGABYTE = 1_000_000

let belfry: Belfry
let close = async () => {}

beforeEach(async () => {
  belfry = createBelfry({ store: memory(), roles: [], logger: silentLogger })
  await belfry.start()
})

afterEach(async () => {
  await close()
  await belfry.stop()
})

type Ask = (path: string, body?: unknown, type?: string) => Promise<Response>

function service(
  limits: ServerOptions['limits'] = { cpuMsPerSecond: 1_000_000 },
  caller: () => Caller = () => OPERATOR,
) {
  const server = createServer(belfry, { authorise: caller, limits, logger: silentLogger })
  close = () => server.close()
  const ask: Ask = (path, body, type = 'application/json') =>
    server.fetch(
      new Request(`http://any.example${path}`, {
        ...(body === undefined ? {} : { method: 'POST', headers: { 'content-type': type } }),
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    )
  return ask
}

/** CPU time of the process, which does not depend on what else the machine does. */
async function cpuMs(work: () => Promise<unknown>): Promise<number> {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1_000
}

function repeated(item: string): string {
  return `[${Array.from({ length: Math.floor(MEGABYTE / (item.length + 1)) }, () => item).join(',')}]`
}

function manyKeys(value: string): string {
  const count = Math.floor(MEGABYTE / (value.length + 10))
  return `{${Array.from({ length: count }, (_, at) => `"k${at}":${value}`).join(',')}}`
}

const timelines = ['* * * * *', '30 2 * * SUN', '0 0 29 2 *'].map((cron) => ({ cron, timezone: 'Europe/Berlin' }))

const ATTACKS: readonly (readonly [what: string, path: string, body: unknown])[] = [
  ...timelines.map((line) => {
    const body = { schedule: { ...line, times: 1_000_000_000 }, from: '9990-01-01T00:00:00Z' }
    return [`a preview of ${line.cron} with a billion ticks from the year 9990`, '/v1/schedules:preview', body] as const
  }),
  [
    'a preview of many years',
    '/v1/schedules:preview',
    { schedule: { cron: '0 0 1 1 *', timezone: 'Asia/Gaza' }, from: '0001-01-01T00:00:00Z', count: 1_000 },
  ],
  ...['""', '[]', '{}', '0', '"2026-01-01"'].map(
    (item) => [`a list of ${item} as at`, '/v1/schedules', `{"job":"x","at":${repeated(item)}}`] as const,
  ),
  ['very many unknown fields', '/v1/schedules', manyKeys('0')],
  ['very many schedules', '/v1/schedules:apply', `{"schedules":${manyKeys('{}')}}`],
  ['a thousand schedules with wrong fields', '/v1/schedules:apply', `{"schedules":${wrongSchedules()}}`],
  ['very many states', '/v1/runs:cancel', `{"state":${repeated('"x"')}}`],
  ['a payload of very many values', '/v1/jobs/x/runs', `{"payload":${repeated('0')}}`],
  ['a payload of very many keys', '/v1/jobs/x/runs', `{"payload":${manyKeys('0')}}`],
  ['text of brackets and backslashes', '/v1/schedules', `"${'\\\\['.repeat(MEGABYTE / 3)}`],
]

function wrongSchedules(): string {
  const wrong = { every: '', at: [''], timezone: '', startsAt: '', endsAt: '', job: '', to: '', missed: 1, keep: 1 }
  return JSON.stringify(Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`s${at}`, wrong])))
}

describe('an expensive request', () => {
  it.each(ATTACKS)('%s takes little CPU time', async (_, path, body) => {
    const ask = service()
    // The first request of a kind also loads code and time zones.
    await ask(path, body)
    expect(await cpuMs(async () => expect((await ask(path, body)).status).toBeLessThan(500))).toBeLessThan(400)
  })

  it('of a thousand wrong lines reports them in turns', async () => {
    const line = `${JSON.stringify({ id: 'a', every: '', startsAt: '', at: [''], job: '' })}\n`
    const ask = service()
    const cpu = await cpuMs(() => ask('/v1/schedules:import', line.repeat(3_000), 'application/x-ndjson'))
    expect(cpu).toBeLessThan(3_000)
  })

  it('is refused while its caller’s budget is used up, and other callers are not', async () => {
    let caller = OPERATOR
    const ask = service({ cpuMsPerSecond: 20 }, () => caller)
    const body = { schedule: { every: '1s', times: 1_000_000_000 }, from: '9990-01-01T00:00:00Z' }
    const first = await ask('/v1/schedules:preview', body)
    expect(first.status).toBe(200)
    await ask('/v1/schedules:preview', body)
    const refused = await ask('/v1/session')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await outcome(refused)).toBe('429 RATE_LIMITED')
    caller = { name: 'bob', role: 'viewer' }
    expect((await ask('/v1/session')).status).toBe(200)
  })
})

describe('a page of large items', () => {
  it('ends after two megabytes, and the next pages have the rest', async () => {
    const ask = service()
    for (let at = 0; at < 60; at += 1) await belfry.enqueue('x', 'x'.repeat(200_000))
    const seen = new Set<string>()
    let cursor: string | null = ''
    let pages = 0
    while (cursor !== null) {
      const answer = await ask(`/v1/runs?limit=1000${cursor === '' ? '' : `&cursor=${cursor}`}`)
      const text = await answer.text()
      expect(text.length).toBeLessThan(5_000_000)
      const { data, nextCursor } = JSON.parse(text) as { data: { id: string }[]; nextCursor: string | null }
      for (const { id } of data) seen.add(id)
      cursor = nextCursor
      pages += 1
    }
    expect([seen.size, pages > 1]).toEqual([60, true])
  })
})
