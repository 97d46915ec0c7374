/**
 * Every route with every kind of token, on every store: no answer to a token for `a/` holds anything of `b/`. The jobs of
 * both share an exclusive key, whose lock lies in `a/`, and both use the same idempotency keys.
 */
import { afterEach, describe, expect, it } from 'vitest'
import { createBelfry, silentLogger } from '../../../src/index.js'
import type { NewToken } from '../../../src/server/index.js'
import { ScriptedSink } from '../../sinks/scripted-sink.js'
import { type OpenedStore, openedStores } from './opened-stores.js'
import { bearer, type SecuredService, securedService } from './secured-service.js'

const TOKENS: Readonly<Record<string, NewToken>> = {
  viewer: { role: 'viewer', prefix: 'a/' },
  operator: { role: 'operator', prefix: 'a/' },
  worker: { role: 'worker', prefix: 'a/' },
  admin: { role: 'admin', prefix: 'a/' },
  'admin with lists': { role: 'admin', prefix: 'a/', jobs: ['a/*', 'mail'], sinks: ['hooks'] },
}

/** Occurs in every name, payload and note of `b/`. */
const MARK = 'secret-of-b'
const JOB = `b/${MARK}-job`
const SCHEDULE = `b/${MARK}-1`
const LOCK = `b/${MARK}-lock`
const SINK = `b/${MARK}-sink`
const SHARED = { name: 'a/shared', by: () => 1, checkOnEnqueue: true, whenBusy: 'skip' } as const

const OPEN = ['POST /v1/session', 'DELETE /v1/session', 'GET /openapi.json']

let close = async () => {}
afterEach(() => close())

/** The service, and the ids of the runs of `b/`. */
async function scene(open: () => Promise<OpenedStore>): Promise<{ service: SecuredService; runs: readonly string[] }> {
  const { store, close: closeStore } = await open()
  const belfry = createBelfry({ store, roles: ['run'], sinks: { [SINK]: new ScriptedSink() }, logger: silentLogger })
  let end = () => {}
  const isOver = new Promise<void>((resolve) => {
    end = resolve
  })
  const running = new Promise<void>((resolve) => {
    belfry.job(JOB, {
      exclusive: SHARED,
      run: () => {
        resolve()
        return isOver
      },
    })
  })
  belfry.job('a/mail', { exclusive: SHARED, run: () => {} })
  belfry.job('a/idle', { run: () => {} })
  const service = await securedService({ belfry })
  close = async () => {
    end()
    await service.close()
    await closeStore()
  }
  const ana = bearer(await service.token({ role: 'admin', name: 'ana' }))
  const ask = async (method: string, path: string, body: unknown, headers = {}) =>
    (await (await service.ask(path, { method, body, headers: { ...ana, ...headers } })).json()) as { runId: string }
  const winner = await ask('POST', `/v1/jobs/${at(JOB)}/runs`, { payload: { card: MARK } }, { 'idempotency-key': 'k' })
  await running
  await ask('PUT', `/v1/schedules/${at(SCHEDULE)}`, { every: '1d', job: JOB, payload: { card: MARK } })
  await ask('PUT', `/v1/schedules/${at(`${SCHEDULE}2`)}`, { every: '1d', to: SINK, payload: { card: MARK } })
  await ask('POST', `/v1/schedules/${at(SCHEDULE)}/pause`, { note: MARK })
  const triggered = await ask('POST', `/v1/schedules/${at(SCHEDULE)}/trigger`, {})
  await ask('POST', `/v1/runs/${triggered.runId}/cancel`, {})
  await ask('PUT', `/v1/locks/${at(LOCK)}`, { ttl: '1h', holder: MARK })
  // Other callers' audit entries whose targets lie in `a/`, but whose details do not.
  await ask('POST', '/v1/schedules:apply', { schedules: { [`${SCHEDULE}3`]: { every: '1d', job: JOB } }, prefix: 'a/' })
  await ask('PUT', '/v1/schedules/a%2F1', { every: '1d', job: 'a/mail' })
  await ask('PUT', '/v1/schedules/a%2Fforeign', { every: '1d', job: 'a/idle' })
  return { service, runs: [winner.runId, triggered.runId] }
}

const at = encodeURIComponent

interface Operation {
  readonly method: string
  readonly path: string
}

async function operations(service: SecuredService): Promise<readonly Operation[]> {
  const document = (await (await service.ask('/openapi.json')).json()) as { paths: Record<string, object> }
  return Object.entries(document.paths)
    .flatMap(([path, item]) => Object.keys(item).map((method) => ({ method: method.toUpperCase(), path })))
    .filter(({ method, path }) => !OPEN.includes(`${method} ${path}`))
}

/** Bodies of which one suits each operation. Those that make something make it in `a/`. */
const BODIES: readonly unknown[] = [
  {},
  { payload: 'mine' },
  { ttl: '1m', holder: 'me' },
  { every: '1h', job: 'a/mail' },
  { every: '1h', job: JOB },
  { every: '1h', to: SINK },
  { id: 'a/new', every: '1h', job: 'a/mail' },
  { id: SCHEDULE },
  { job: JOB },
  { schedule: SCHEDULE, state: ['cancelled'], limit: 1 },
  { all: true, limit: 1 },
  { kind: 'cancel-runs', all: true },
  { kind: 'retry-runs', job: JOB },
  { kind: 'pause-schedules', prefix: 'b/' },
  { token: 1 },
  { schedules: { 'a/2': { every: '1h', job: 'a/mail' } }, prune: true, prefix: 'a/' },
  { schedules: { [SCHEDULE]: { every: '1h', job: 'a/mail' } } },
  { from: '2026-01-01T00:00:00Z', to: '2026-01-03T00:00:00Z' },
]

const QUERIES: readonly string[] = [
  '',
  'limit=1',
  'state=cancelled&limit=1',
  `schedule=${at(SCHEDULE)}&limit=1`,
  `job=${at(JOB)}&limit=1`,
  `sink=${at(SINK)}`,
  `key=${at('a/shared')}`,
  `prefix=${at('b/')}`,
  'prefix=',
  'recent=true',
  'from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z',
]

interface Sent {
  readonly path: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

function* requestsOf({ method, path }: Operation, ids: readonly string[]): Generator<Sent> {
  const paths = path.includes('{') ? ids.map((id) => path.replaceAll(/\{\w+\}/g, at(id))) : [path]
  for (const each of paths) {
    if (method === 'GET' || method === 'DELETE') for (const query of QUERIES) yield { path: `${each}?${query}` }
    else for (const body of BODIES) yield { path: each, body, headers: { 'idempotency-key': 'k' } }
  }
}

/** All texts in an answer, names of members included. */
function texts(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(texts)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => [name, ...texts(member)])
}

async function answerOf(response: Response): Promise<string> {
  if (response.headers.get('content-type') !== 'text/event-stream') return response.text()
  await response.body?.cancel()
  return ''
}

/** What an answer holds of `b/`, apart from what its request named. */
function foreign(answer: string, { path, body }: Sent, runs: readonly string[]): readonly string[] {
  const asked = decodeURIComponent(path) + JSON.stringify(body ?? '')
  // An export is a line of JSON for each schedule.
  const found = answer.split('\n').flatMap((line) => (line.startsWith('{') ? texts(JSON.parse(line)) : [line]))
  const named = [SCHEDULE, JOB, LOCK, SINK, ...runs].filter((name) => asked.includes(name))
  return found.filter((text) => {
    const rest = named.reduce((left, name) => left.replaceAll(name, '').replaceAll(at(name), ''), text)
    // A run's key is held by "run:<its number>:<its token>".
    const isHolder = runs.some((id) => text.startsWith(`run:${id.split('-')[0]}:`))
    return rest.includes(MARK) || isHolder || (runs.includes(text) && !named.includes(text))
  })
}

async function walk(service: SecuredService, headers: Record<string, string>, runs: readonly string[]) {
  const leaks: string[] = []
  const seen = new Map<string, Set<number>>()
  const ids = ['a/1', 'a/shared', 'a/mail', SCHEDULE, LOCK, SINK, ...runs]
  for (const operation of await operations(service)) {
    const name = `${operation.method} ${operation.path}`
    for (const sent of requestsOf(operation, ids)) {
      const { path, body } = sent
      const response = await service.ask(path, {
        ...{ method: operation.method, headers: { ...headers, ...sent.headers } },
        ...(body === undefined ? {} : { body }),
      })
      expect(response.status).toBeLessThan(500)
      seen.set(name, (seen.get(name) ?? new Set()).add(response.status))
      for (const text of foreign(await answerOf(response), sent, runs)) leaks.push(`${name} ${path}: ${text}`)
    }
  }
  return { leaks: [...new Set(leaks)], seen }
}

/**
 * What the event stream sends while work is done: first what a reconnecting client has missed, then changes of `b/`, and last a
 * run of `a/`. Empty for a token that may not open it.
 */
async function streamed(service: SecuredService, headers: Record<string, string>, work: () => Promise<void>) {
  const response = await service.ask('/v1/events', { headers: { ...headers, 'last-event-id': '1' } })
  const reader = response.status === 200 ? response.body?.getReader() : undefined
  let text = ''
  const read = async () => {
    const decoder = new TextDecoder()
    for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
      text += decoder.decode(part.value, { stream: true })
    }
  }
  const ended = read()
  await work()
  const hidden = await service.belfry.schedules.trigger(SCHEDULE)
  await service.belfry.runs.cancel(hidden.run)
  const { run: own } = await service.belfry.enqueue('a/idle', {})
  if (reader !== undefined) await expect.poll(() => text, { timeout: 10_000 }).toContain(own)
  await reader?.cancel()
  await ended
  return { text: text.replaceAll(/^data: /gm, ''), hidden: hidden.run }
}

/** Other stores answer the same routes, so the tokens with the most rights are enough there. */
const CASES = Object.entries(openedStores).flatMap(([store, open]) =>
  Object.entries(TOKENS)
    .filter(([kind]) => store === 'memory' || kind === 'operator' || kind === 'admin with lists')
    .map(([kind, token]) => ({ store, kind, open, token })),
)

describe('no answer holds data of others', () => {
  it.each(CASES)('on $store, for a token: $kind', { timeout: 60_000 }, async ({ open, kind, token }) => {
    const { service, runs } = await scene(open)
    const before = await foreignState(service)
    const headers = bearer(await service.token(token))
    const leaks: string[] = []
    let seen = new Map<string, Set<number>>()
    const { text, hidden } = await streamed(service, headers, async () => {
      const walked = await walk(service, headers, runs)
      leaks.push(...walked.leaks)
      seen = walked.seen
      expect(await foreignState(service)).toEqual(before)
    })
    expect(leaks).toEqual([])
    expect(foreign(text, { path: '' }, [...runs, hidden])).toEqual([])
    // Proves that the requests reach their routes.
    const served = [...seen.values()].filter((statuses) => [...statuses].some((status) => status < 300)).length
    expect(served).toBeGreaterThanOrEqual({ worker: 2, viewer: 14 }[kind] ?? 23)
  })
})

it('the walk finds data of others in answers to a token without a prefix', { timeout: 60_000 }, async () => {
  const { service, runs } = await scene(openedStores.memory)
  const headers = bearer(await service.token({ role: 'admin' }))
  const { text, hidden } = await streamed(service, headers, async () => {})
  expect(foreign(text, { path: '' }, [hidden])).toContain(hidden)
  const { leaks } = await walk(service, headers, runs)
  const routes = new Set(leaks.map((leak) => leak.split(' ').slice(0, 2).join(' ')))
  for (const route of ['GET /v1/runs', 'GET /v1/schedules', 'GET /v1/audit', 'POST /v1/jobs/{name}/runs']) {
    expect(routes).toContain(route)
  }
})

async function foreignState({ belfry }: SecuredService) {
  const [schedules, runs, locks] = [
    await belfry.schedules.list({ prefix: 'b/', limit: 100 }),
    await belfry.runs.list({ prefix: 'b/', limit: 100 }),
    await belfry.locks.list({ prefix: 'b/', limit: 100 }),
  ]
  return {
    schedules: schedules.items,
    runs: runs.items.map(({ id, state, token }) => ({ id, state, token })),
    locks: locks.items.map(({ name, token }) => ({ name, token })),
  }
}
