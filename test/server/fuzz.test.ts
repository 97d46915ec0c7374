import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createBelfry, type Store, silentLogger } from '../../src/index.js'
import type { Caller } from '../../src/server/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { createTestBelfry, manualClock, type TestBelfry } from '../../src/testing/index.js'
import { freshPostgres } from '../servers/fresh-postgres.js'
import { freshRedis } from '../servers/fresh-redis.js'
import { type CheckedServer, checkedServer } from './checked-server.js'
import { type OddRequest, oddRequests } from './odd-request.js'

const PATIENCE_MS = 10_000
/** `BELFRY_FUZZ=20` sends twenty times as many requests, with other seeds. */
const LONGER = Number(process.env.BELFRY_FUZZ ?? 1)

/** All contents of the store that requests can change. */
async function stateOf(store: Store): Promise<string> {
  const [schedules, runs, leases, frozen] = await Promise.all([
    store.schedules.list({ limit: 1_000 }),
    store.runs.list({ limit: 1_000 }),
    store.leases.list({ limit: 1_000 }),
    store.frozen(),
  ])
  return JSON.stringify([schedules.items, runs.items, leases.items, frozen])
}

/** Resolves with the response, and whether the clock had to advance for it. */
type Await = (response: Promise<Response>) => Promise<{ response: Response; timePassed: boolean }>

const inTime: Await = async (response) => {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error('it hangs')), PATIENCE_MS).unref()
  })
  return { response: await Promise.race([response, late]), timePassed: false }
}

/** Advances the clock only while a request waits for it. */
function advancingClock(kit: TestBelfry): Await {
  return async (response) => {
    let isDone = false
    const done = response.finally(() => {
      isDone = true
    })
    done.catch(() => {})
    for (let turn = 0; turn < 20 && !isDone; turn += 1) await kit.clock.settle()
    const timePassed = !isDone
    if (timePassed) await kit.advance('2m')
    return { ...(await inTime(done)), timePassed }
  }
}

function requestOf({ method, path, headers, body }: OddRequest): Request | undefined {
  try {
    return new Request(`http://localhost${path}`, { method, headers, ...(body === undefined ? {} : { body }) })
  } catch {
    // Fetch refuses to build such a request, so no client can send it.
    return undefined
  }
}

/** Names that only a program with the library knows. */
const LIBRARY_CALL = /\w\(\)|\bDate\b|\bcreate(?:Belfry|Server)\b/

interface Refusal {
  readonly detail: string
  readonly errors?: readonly { readonly pointer: string; readonly message: string }[]
}

/** A refusal speaks of the request alone, and says where it is wrong. */
async function checkRefusal(response: Response, sent: string): Promise<void> {
  const { detail, errors } = (await response.json()) as Refusal
  const isQuoted = sent.includes('()') || sent.includes('Date')
  if (!isQuoted) expect(detail, sent).not.toMatch(LIBRARY_CALL)
  if (response.status === 422) expect(errors, `${sent}: ${detail}`).not.toHaveLength(0)
}

async function checkOne(store: Store, server: CheckedServer, odd: OddRequest, answered: Await): Promise<number> {
  const request = requestOf(odd)
  if (request === undefined) return 0
  const before = await stateOf(store)
  const { response, timePassed } = await answered(server.fetch(request))
  const sent = `${odd.method} ${odd.path} ${odd.body}`
  expect(response.status, sent).not.toBe(500)
  if (response.status >= 400 && response.body !== null) await checkRefusal(response, sent)
  else await response.body?.cancel()
  if (response.status >= 400 && !timePassed) expect(await stateOf(store)).toBe(before)
  return response.status
}

it.each([
  ['an admin', { name: 'all', role: 'admin' }, 1],
  ['a viewer', { name: 'eye', role: 'viewer' }, 2],
  ['an operator with a prefix', { name: 'team', role: 'operator', prefix: 'team/' }, 3],
] satisfies [string, Caller, number][])(
  'answers any request that %s sends without a 5xx, and changes nothing when it refuses one',
  async (_, caller, seed) => {
    const kit = createTestBelfry({ roles: [] })
    kit.belfry.job('a', { run: () => null })
    await kit.belfry.start()
    await kit.belfry.schedules.put('a', { every: '1h', job: 'a' })
    const { version } = await kit.belfry.schedules.put('other', { every: '1h', job: 'a' })
    await kit.belfry.locks.grant('other', { ttl: '1000d' })
    const server = await checkedServer(kit.belfry, { authorise: async () => caller, audit: false })
    const statuses = new Map<number, number>()
    await fc.assert(
      fc.asyncProperty(oddRequests(server.document), async (odd) => {
        const status = await checkOne(kit.store, server, odd, advancingClock(kit))
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }),
      { seed: seed * LONGER, numRuns: 1_500 * LONGER, endOnFailure: true },
    )
    // Proves that requests got past routing: many succeeded, and the others were refused for many reasons.
    expect(statuses.get(200) ?? 0).toBeGreaterThan(50)
    expect([...statuses.keys()].length).toBeGreaterThan(4)
    const operations = Object.values(server.document.paths).flatMap((path) => Object.values(path))
    expect([...server.seen.keys()].sort()).toEqual(operations.map(({ operationId }) => operationId).sort())
    if (caller.role === 'viewer') expect((await kit.belfry.schedules.list()).items).toHaveLength(2)
    if (caller.name === 'team') expect(await kit.belfry.schedules.get('other')).toMatchObject({ version })
    await server.close()
    await kit.belfry.stop()
  },
  120_000 * LONGER,
)

async function freshSqlite(): Promise<{ store: Store; close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'belfry-fuzz-'))
  const store = sqlite({ path: join(folder, 'fuzz.db'), clock: manualClock() })
  return { store, close: () => rm(folder, { recursive: true }) }
}

it.each([
  ['sqlite', freshSqlite, 4],
  ['postgres', () => freshPostgres(), 5],
  ['redis', () => freshRedis(2), 6],
] satisfies [string, () => Promise<{ store: Store; close(): Promise<void> }>, number][])(
  'answers on %s as well, whatever its server accepts as text',
  async (_, open, seed) => {
    const { store, close } = await open()
    const belfry = createBelfry({ store, roles: [], logger: silentLogger })
    await belfry.start()
    await belfry.schedules.put('a', { every: '1h', job: 'a' })
    const server = await checkedServer(belfry, { audit: false, logger: silentLogger })
    await fc.assert(
      fc.asyncProperty(oddRequests(server.document), async (odd) => {
        await checkOne(store, server, odd, inTime)
      }),
      { seed: seed * LONGER, numRuns: 500 * LONGER, endOnFailure: true },
    )
    await server.close()
    await belfry.stop()
    await close()
  },
  180_000 * LONGER,
)
