import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { writeRunLog } from '../../src/api/runs/run-log.js'
import { createTestBelfry, type TestBelfry } from '../../src/testing/index.js'
import { type CheckedServer, checkedServer } from './checked-server.js'

let kit: TestBelfry
let server: CheckedServer

beforeEach(async () => {
  kit = createTestBelfry({ now: '2026-01-01T08:00:00Z' })
  kit.belfry.job('digest', { run: () => ({ sent: true }) })
  kit.belfry.job('break', {
    retry: { attempts: 1 },
    run: () => {
      throw new Error('out of paper')
    },
  })
  await kit.belfry.start()
  server = await checkedServer(kit.belfry)
})

afterEach(async () => {
  await server.close()
  await kit.belfry.stop()
})

describe('for operators', () => {
  it('a list has the outcome of recent runs when `recent` is set', async () => {
    await kit.belfry.schedules.put('a', { every: '1h', job: 'digest' })
    await kit.belfry.schedules.put('b', { every: '1h', job: 'break' })
    await kit.belfry.schedules.put('c', { every: '9h', job: 'break' })
    await kit.advance('90m')
    const { body } = await server.ask('/v1/schedules?recent=true')
    expect(body.data.map((schedule: { recent: unknown }) => schedule.recent)).toEqual([
      {
        last: { run: expect.any(String), state: 'succeeded', at: expect.stringMatching(/^2026-01-01T09:00:0/) },
        p95Ms: expect.any(Number),
      },
      { last: { run: expect.any(String), state: 'failed', at: expect.any(String) }, p95Ms: expect.any(Number) },
      {},
    ])
    expect((await server.ask('/v1/schedules')).body.data[0]).not.toHaveProperty('recent')
    expect((await server.ask('/v1/schedules?recent=perhaps')).status).toBe(400)
  })

  it('a run’s log can be read, and is 404 when there is none', async () => {
    const { run } = await kit.belfry.enqueue('digest')
    expect((await server.ask(`/v1/runs/${run}/log`)).status).toBe(404)
    await writeRunLog(kit.belfry.records, run, { text: 'hello\n', omitted: 0, attempt: 1 })
    expect((await server.ask(`/v1/runs/${run}/log`)).body).toEqual({ text: 'hello\n', omitted: 0, attempt: 1 })
    expect((await server.ask('/v1/runs/nope/log')).body.code).toBe('RUN_NOT_FOUND')
  })

  it('the doctor reports findings, and is forbidden for callers with a prefix', async () => {
    expect((await server.ask('/v1/doctor')).body).toMatchObject({ ok: true })
    await kit.belfry.schedules.put('t', { every: '1h', job: 'typo' })
    const { body } = await server.ask('/v1/doctor')
    expect(body.ok).toBe(false)
    expect(body.checks.find(({ name }: { name: string }) => name === 'jobs').findings).toEqual([
      expect.objectContaining({ what: 'nobody runs the job "typo", which the schedule "t" needs' }),
    ])
    const narrow = await checkedServer(kit.belfry, {
      authorise: async () => ({ name: 'ana', role: 'admin', prefix: 'billing/' }),
    })
    expect((await narrow.ask('/v1/doctor')).status).toBe(403)
  })

  it('an export can start after an id', async () => {
    for (const id of ['a', 'b', 'c']) await kit.belfry.schedules.put(id, { every: '1h', job: 'digest' })
    const answer = await server.fetch(new Request('http://localhost/v1/schedules:export?after=a'))
    const ids = (await answer.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).id)
    expect(ids).toEqual(['b', 'c'])
  })
})
