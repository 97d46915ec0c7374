import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry, silentLogger } from '../../src/index.js'
import type { Caller } from '../../src/server/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { type CheckedServer, checkedServer } from './checked-server.js'

const STORES = {
  memory: () => memory(),
  sqlite: () => sqlite({ path: join(mkdtempSync(join(tmpdir(), 'belfry-bulk-')), 'bulk.db') }),
}

describe.each(Object.entries(STORES))('on %s', (_, store) => {
  let belfry: Belfry
  let server: CheckedServer
  let caller: Caller = { name: 'test', role: 'admin' }

  async function open(): Promise<CheckedServer> {
    belfry = createBelfry({ store: store(), roles: [], logger: silentLogger })
    await belfry.start()
    caller = { name: 'test', role: 'admin' }
    server = await checkedServer(belfry, { authorise: async () => caller, limits: { batch: 50 } })
    return server
  }

  afterEach(async () => {
    await server.close()
    await belfry.stop()
  })

  const send = (path: string, body: unknown) => server.ask(path, { method: 'POST', body })
  const lines = (body: string | ReadableStream<Uint8Array>, query = '') =>
    server.fetch(
      new Request(`http://localhost/v1/schedules:import${query}`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/x-ndjson' }, body },
        ...(typeof body === 'string' ? {} : { duplex: 'half' }),
      }),
    )
  const ids = async () => (await belfry.schedules.list({ limit: 10_000 })).items.map(({ id }) => id)

  describe('preview', () => {
    it('shows the next ticks of a stored and of an unsaved schedule', async () => {
      await open()
      const draft = await send('/v1/schedules:preview', {
        schedule: { cron: '0 9 * * *', timezone: 'Europe/Berlin' },
        ...{ from: '2026-03-28T00:00:00Z', count: 2 },
      })
      expect(draft.body).toMatchObject({
        description: 'At 09:00, Europe/Berlin time',
        data: [{ at: '2026-03-28T08:00:00.000Z' }, { at: '2026-03-29T07:00:00.000Z' }],
      })
      await belfry.schedules.put('x', { every: '1h', job: 'a' })
      expect((await send('/v1/schedules:preview', { id: 'x' })).body.data).toHaveLength(5)
      expect((await send('/v1/schedules:preview', { id: 'y' })).status).toBe(404)
      expect((await send('/v1/schedules:preview', {})).status).toBe(422)
      const bad = await send('/v1/schedules:preview', { schedule: { cron: '99 * * * *' } })
      expect(bad.body.errors[0]).toMatchObject({ pointer: '/schedule/cron', code: 'EXPRESSION_OUT_OF_RANGE' })
    })
  })

  describe('apply', () => {
    it('makes the stored schedules equal to these, and shows the changes beforehand', async () => {
      await open()
      await belfry.schedules.put('app/old', { every: '1h', job: 'a' })
      await belfry.schedules.put('app/same', { every: '1h', job: 'a' })
      await belfry.schedules.put('else', { every: '1h', job: 'a' })
      const wanted = {
        schedules: { 'app/new': { every: '2h', job: 'a' }, 'app/same': { every: '1h', job: 'a' } },
        ...{ prune: true, prefix: 'app/' },
      }
      const dry = await send('/v1/schedules:apply', { ...wanted, dryRun: true })
      expect(dry.body).toMatchObject({
        applied: false,
        changes: [
          { id: 'app/new', change: 'create', after: { every: '2h' } },
          { id: 'app/old', change: 'remove', before: { every: '1h' } },
        ],
        unchanged: 1,
      })
      expect(await ids()).toEqual(['app/old', 'app/same', 'else'])
      expect((await send('/v1/schedules:apply', wanted)).body).toEqual({ ...dry.body, applied: true })
      expect(await ids()).toEqual(['app/new', 'app/same', 'else'])
      expect((await send('/v1/schedules:apply', wanted)).body).toEqual({ applied: true, changes: [], unchanged: 2 })
    })

    it('does nothing when one schedule is invalid, and says which', async () => {
      await open()
      const schedules = { a: { every: '1h', job: 'a' }, 'b/c': { cron: 'x', job: 'a' } }
      const wrong = await send('/v1/schedules:apply', { schedules })
      expect(wrong.body.errors[0].pointer).toBe('/schedules/b~1c/cron')
      const past = { a: { every: '1h', job: 'a' }, b: { at: '2001-01-01T00:00:00Z', job: 'a' } }
      expect((await send('/v1/schedules:apply', { schedules: past })).status).toBe(422)
      expect((await send('/v1/schedules:apply', { schedules: {}, prune: true })).status).toBe(422)
      const many = Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`s${n}`, { every: '1h', job: 'a' }]))
      expect((await send('/v1/schedules:apply', { schedules: many })).body.code).toBe('BATCH_TOO_LARGE')
      expect(await ids()).toEqual([])
    })

    it('stays within the caller’s prefix', async () => {
      await open()
      await belfry.schedules.put('else', { every: '1h', job: 'a' })
      caller = { name: 'team', role: 'admin', prefix: 'team/' }
      const schedule = { every: '1h', job: 'team/job' }
      expect((await send('/v1/schedules:apply', { schedules: { else: schedule } })).status).toBe(403)
      expect((await send('/v1/schedules:apply', { schedules: {}, prune: true, prefix: '' })).status).toBe(403)
      expect((await send('/v1/schedules:apply', { schedules: { 'team/a': schedule } })).status).toBe(200)
      expect(await ids()).toEqual(['else', 'team/a'])
    })
  })

  describe('import', () => {
    it('reports each line’s error, also for a job that is an object', async () => {
      await open()
      const jobs = [5, null, ['a'], { name: 'a' }, 'a']
      const body = jobs.map((job, n) => JSON.stringify({ id: `s/${n}`, every: '1h', job })).join('\n')
      const answer = (await (await lines(body)).json()) as ImportResult
      expect(answer).toMatchObject({ created: 1, refused: 4 })
      expect(answer.errors.map(({ id, errors }) => [id, errors?.[0]?.pointer])).toEqual(
        ['s/0', 's/1', 's/2', 's/3'].map((id) => [id, '/job']),
      )
    })

    it('accepts thousands of lines, reports invalid ones, and accepts an export unchanged', async () => {
      await open()
      const good = Array.from({ length: 2_500 }, (_, n) => ({ id: `s/${n}`, every: '1h', job: 'a', payload: { n } }))
      const body = [
        ...good.slice(0, 1_200).map((line) => JSON.stringify(line)),
        '{"id": "broken", ',
        '',
        '{"id": "wrong", "cron": "99 * * * *", "job": "a", "hurry": 1}',
        '{"id": "past", "at": "2001-01-01T00:00:00Z", "job": "a"}',
        '[1]',
        '{"every": "1h", "job": "a"}',
        '{"id": "proto", "every": "1h", "job": "a", "payload": {"__proto__": {}}}',
        JSON.stringify({ id: 'long', every: '1h', job: 'a', payload: 'x'.repeat(1_100_000) }),
        ...good.slice(1_200).map((line) => JSON.stringify(line)),
      ].join('\n')
      const answer = (await (await lines(body)).json()) as ImportResult
      expect(answer).toMatchObject({ taken: 2_508, nextLine: 2_509, created: 2_500, updated: 0, refused: 7 })
      expect(answer.errors.map(({ line, code }) => [line, code])).toEqual([
        [1_201, 'JSON_INVALID'],
        [1_203, 'OPTION_INVALID'],
        [1_204, 'OPTION_INVALID'],
        [1_205, 'BODY_INVALID'],
        [1_206, 'NAME_INVALID'],
        [1_207, 'PAYLOAD_INVALID'],
        [1_208, 'BODY_TOO_LARGE'],
      ])
      expect(answer.errors[1]?.errors?.map(({ pointer }) => pointer)).toEqual(['/cron', '/hurry'])
      expect(await ids()).toHaveLength(2_500)
      const exported = await (await server.fetch(new Request('http://localhost/v1/schedules:export'))).text()
      expect(exported.trim().split('\n')).toHaveLength(2_500)
      const again = (await (await lines(exported)).json()) as ImportResult
      expect(again).toMatchObject({ taken: 2_500, created: 0, updated: 0, unchanged: 2_500, refused: 0 })
      const some = await server.fetch(new Request('http://localhost/v1/schedules:export?prefix=s/24'))
      expect((await some.text()).trim().split('\n')).toHaveLength(111)
    })

    it('keeps the last of several lines for one id, however far apart they are', async () => {
      await open()
      const line = (n: number) => JSON.stringify({ id: `s${n % 700}`, every: '1h', job: 'a', payload: n })
      await lines(Array.from({ length: 3_000 }, (_, n) => line(n)).join('\n'))
      expect((await belfry.schedules.get('s5'))?.definition.payload).toBe(2_805)
      expect((await belfry.schedules.get('s199'))?.definition.payload).toBe(2_999)
    })

    it('continues where a broken connection ended', async () => {
      await open()
      const all = Array.from({ length: 3_000 }, (_, n) => `${JSON.stringify({ id: `s${n}`, every: '1h', job: 'a' })}\n`)
      const sent = new TextEncoder().encode(all.slice(0, 2_300).join(''))
      let isSent = false
      const broken = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (isSent) controller.error(new TypeError('terminated'))
          else controller.enqueue(sent)
          isSent = true
        },
      })
      const cut = await lines(broken, '?name=nightly')
      expect(cut.status).toBe(400)
      const progress = (await server.ask('/v1/schedules:import?name=nightly')).body
      expect(progress).toMatchObject({ taken: 2_000, nextLine: 2_001, created: 2_000, done: false })
      expect(await cut.json()).toMatchObject({ taken: 2_000, nextLine: 2_001 })
      const rest = await lines(
        all.slice(progress.nextLine - 1).join(''),
        `?name=nightly&firstLine=${progress.nextLine}`,
      )
      expect(await rest.json()).toMatchObject({ taken: 1_000, created: 1_000, nextLine: 3_001 })
      expect((await server.ask('/v1/schedules:import?name=nightly')).body.done).toBe(true)
      expect(await ids()).toHaveLength(3_000)
      expect((await server.ask('/v1/schedules:import?name=other')).status).toBe(404)
    })

    it('stays within the caller’s prefix, line by line', async () => {
      await open()
      caller = { name: 'team', role: 'operator', prefix: 'team/' }
      const answer = await lines(
        '{"id":"team/a","every":"1h","job":"team/b"}\n{"id":"else","every":"1h","job":"team/b"}\n',
      )
      expect(await answer.json()).toMatchObject({ created: 1, refused: 1, errors: [{ line: 2, code: 'FORBIDDEN' }] })
      expect(await ids()).toEqual(['team/a'])
      expect(await (await server.fetch(new Request('http://localhost/v1/schedules:export?prefix=e'))).text()).toBe('')
    })

    it('accepts only JSON lines', async () => {
      await open()
      const wrong = await server.ask('/v1/schedules:import', { method: 'POST', body: { id: 'a' } })
      expect(wrong.status).toBe(415)
      expect(await (await lines('')).json()).toMatchObject({ taken: 0, errors: [] })
      const latin = new Response(new Uint8Array([0x7b, 0xff, 0x0a])).body
      if (latin === null) throw new Error('a response has a body')
      expect((await lines(latin)).status).toBe(400)
    })
  })
})

interface ImportResult {
  readonly errors: readonly { line: number; id?: string; code: string; errors?: readonly { pointer: string }[] }[]
}
