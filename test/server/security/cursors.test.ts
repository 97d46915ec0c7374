/**
 * Cursors tell nothing: a caller with a prefix gets the same pages from a store whether others have data there or not. And
 * cursors are bound to their list and to what their caller may see.
 */
import { afterEach, describe, expect, it } from 'vitest'
import { createBelfry, silentLogger } from '../../../src/index.js'
import { memory } from '../../../src/stores/memory/index.js'
import { type OpenedStore, openedStores } from './opened-stores.js'
import { bearer, outcome, type SecuredService, securedService } from './secured-service.js'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function serviceOn(open: () => Promise<OpenedStore>): Promise<SecuredService> {
  const { store, close } = await open()
  const belfry = createBelfry({ store, roles: [], logger: silentLogger })
  const service = await securedService({ belfry })
  closers.push(close, () => service.close())
  return service
}

/** Own things among foreign ones. The foreign ones are newer and older, of the same jobs and states, and many. */
async function fill({ belfry }: SecuredService, withForeign: boolean): Promise<void> {
  for (let at = 0; at < 12; at += 1) {
    const owners = ['b/x', 'a/own', 'b/y'].filter((owner) => withForeign || owner === 'a/own')
    for (const owner of owners) {
      if (owner === 'a/own' && at % 4 !== 1) continue
      await belfry.schedules.put(`${owner}${at}`, { every: '1d', job: 'a/job' })
      const { run } = await belfry.schedules.trigger(`${owner}${at}`)
      if (at % 3 === 0) await belfry.runs.cancel(run)
      const lock = await belfry.lock(`${owner}-lock-${at}`, { ttl: '1h' })
      closers.push(async () => void (await lock?.release()))
    }
    if (withForeign) await belfry.enqueue('b/job', null)
  }
}

const QUERIES = [
  '/v1/runs?limit=1',
  '/v1/runs?limit=3',
  '/v1/runs?limit=2',
  '/v1/runs?limit=1&state=cancelled',
  '/v1/runs?limit=1&state=ready',
  '/v1/runs?limit=2&job=a%2Fjob',
  '/v1/runs?limit=1&job=b%2Fjob',
  '/v1/runs?limit=1&schedule=b%2Fx0',
  '/v1/runs?limit=1&schedule=b%2Fx0&state=cancelled',
  '/v1/runs?limit=1&schedule=a%2Fown1',
  '/v1/runs?limit=1&key=none',
  '/v1/schedules?limit=1',
  '/v1/schedules?limit=3&recent=true',
  '/v1/schedules?limit=1&job=a%2Fjob',
  '/v1/schedules?limit=1&prefix=b',
  '/v1/schedules?limit=2&state=active',
  '/v1/locks?limit=1',
  '/v1/locks?limit=3',
  '/v1/locks?limit=1&prefix=b%2F',
  '/v1/audit?limit=1',
  '/v1/stats',
]

interface List {
  readonly data?: readonly Record<string, unknown>[]
  readonly nextCursor?: string | null
}

/** All pages of a list as what they show, without ids of runs and instants, and whether each has a successor. */
async function pagesOf(service: SecuredService, path: string, headers: Record<string, string>): Promise<unknown[]> {
  const pages: unknown[] = []
  for (let cursor = ''; ; ) {
    const response = await service.ask(`${path}${cursor}`, { headers })
    const { data, nextCursor, ...rest } = (await response.json()) as List & { now?: unknown; instances?: unknown }
    const shown = data?.map(({ id, schedule, name, state }) => schedule ?? name ?? [id, state])
    const { now: _, ...others } = rest
    pages.push([response.status, shown, typeof nextCursor, others])
    if (nextCursor === null || nextCursor === undefined || pages.length > 50) return pages
    cursor = `&cursor=${nextCursor}`
  }
}

describe.each(Object.entries(openedStores))('on %s', (_, open) => {
  it('pages are the same with data of others in the store as without', { timeout: 60_000 }, async () => {
    const seen: unknown[] = []
    for (const withForeign of [false, true]) {
      const service = await serviceOn(open)
      await fill(service, withForeign)
      const headers = bearer(await service.token({ role: 'admin', prefix: 'a/', name: 'same' }))
      const pages: Record<string, unknown> = {}
      for (const path of QUERIES) pages[path] = await pagesOf(service, path, headers)
      for (const path of ['/v1/runs:cancel', '/v1/runs:retry']) {
        for (const filter of [{ all: true }, { schedule: 'b/x0' }, { job: 'b/job' }]) {
          const response = await service.ask(path, { method: 'POST', headers, body: { limit: 1, ...filter } })
          const { changed, refused, nextCursor } = (await response.json()) as List & { changed: []; refused: number }
          pages[path + JSON.stringify(filter)] = [changed.length, refused, typeof nextCursor]
        }
      }
      seen.push(pages)
    }
    expect(seen[1]).toEqual(seen[0])
  })
})

describe('a cursor', () => {
  async function cursors(service: SecuredService, headers: Record<string, string>) {
    const found = new Map<string, string>()
    for (const list of ['/v1/runs', '/v1/schedules', '/v1/locks', '/v1/audit']) {
      const { nextCursor } = (await (await service.ask(`${list}?limit=1`, { headers })).json()) as List
      found.set(list, nextCursor ?? '')
    }
    return found
  }

  async function filled() {
    const service = await serviceOn(async () => ({ store: memory(), close: async () => {} }))
    await fill(service, true)
    const ana = bearer(await service.token({ role: 'admin', name: 'ana' }))
    for (const note of ['one', 'two']) {
      await service.ask('/v1/schedules/a%2Fown1/pause', { method: 'POST', headers: ana, body: { note } })
    }
    return { service, ana }
  }

  it('works in its own list alone', async () => {
    const { service, ana } = await filled()
    const made = await cursors(service, ana)
    for (const [list, cursor] of made) {
      for (const other of made.keys()) {
        const response = await service.ask(`${other}?cursor=${cursor}`, { headers: ana })
        expect(`${other}: ${await outcome(response)}`).toBe(
          `${other}: ${other === list ? '200' : '400 REQUEST_INVALID'}`,
        )
      }
      const body = { cursor, all: true, state: ['ready'] }
      const response = await service.ask('/v1/runs:cancel', { method: 'POST', headers: ana, body })
      expect(await outcome(response)).toBe('400 REQUEST_INVALID')
    }
  })

  it('works only for callers who see the same', async () => {
    const { service, ana } = await filled()
    const others = {
      same: await service.token({ role: 'admin' }),
      prefix: await service.token({ role: 'admin', prefix: 'a/' }),
      jobs: await service.token({ role: 'admin', jobs: ['a/*'] }),
    }
    for (const [list, cursor] of await cursors(service, ana)) {
      for (const [kind, token] of Object.entries(others)) {
        const answer = await outcome(await service.ask(`${list}?cursor=${cursor}`, { headers: bearer(token) }))
        expect(`${kind}: ${answer}`).toBe(`${kind}: ${kind === 'same' ? '200' : '400 REQUEST_INVALID'}`)
      }
    }
  })

  it('holds nothing that can be read, and is refused when any of its characters is changed', async () => {
    const { service, ana } = await filled()
    for (const [list, cursor] of await cursors(service, ana)) {
      const bytes = Buffer.from(cursor, 'base64url')
      expect(bytes.toString('latin1')).not.toMatch(/own|a\/|b\/|lock/)
      // Two ids of different lengths have cursors of one length.
      expect((bytes.length - 28) % 32).toBe(0)
      for (let at = 0; at < cursor.length; at += 7) {
        const changed = `${cursor.slice(0, at)}${cursor[at] === 'A' ? 'B' : 'A'}${cursor.slice(at + 1)}`
        const response = await service.ask(`${list}?cursor=${changed}`, { headers: ana })
        expect(await outcome(response)).toBe('400 REQUEST_INVALID')
      }
    }
    for (const odd of ['', 'A', '%00', 'x'.repeat(5_000), Buffer.from('b/x0').toString('base64url')]) {
      expect(await outcome(await service.ask(`/v1/runs?cursor=${odd}`, { headers: ana }))).toBe('400 REQUEST_INVALID')
    }
  })

  it('is accepted by every instance of the service', async () => {
    const store = memory()
    const [one, other] = [0, 1].map(() => createBelfry({ store, roles: [], logger: silentLogger }))
    if (one === undefined || other === undefined) throw new Error('two instances')
    const services = [await securedService({ belfry: one }), await securedService({ belfry: other })]
    closers.push(...services.map((service) => () => service.close()))
    await fill(services[0] as SecuredService, true)
    const headers = bearer((await services[0]?.token({ role: 'viewer' })) ?? '')
    const page = (await (await services[0]?.ask('/v1/runs?limit=1', { headers }))?.json()) as List
    const next = await services[1]?.ask(`/v1/runs?limit=1&cursor=${page.nextCursor}`, { headers })
    expect(next?.status).toBe(200)
  })
})
