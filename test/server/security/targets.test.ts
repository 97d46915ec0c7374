/** A token's schedules name only the jobs and sinks that it may use, however they are written. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBelfry, silentLogger } from '../../../src/index.js'
import type { NewToken } from '../../../src/server/index.js'
import { memory } from '../../../src/stores/memory/index.js'
import { ScriptedSink } from '../../sinks/scripted-sink.js'
import { bearer, outcome, type SecuredService, securedService } from './secured-service.js'

let service: SecuredService

beforeEach(async () => {
  const sinks = { hooks: new ScriptedSink(), 'a/hooks': new ScriptedSink(), orders: new ScriptedSink() }
  const belfry = createBelfry({ store: memory(), roles: [], sinks, logger: silentLogger })
  service = await securedService({ belfry })
  await belfry.schedules.put('a/foreign', { every: '1h', job: 'payroll', payload: 'theirs' })
})

afterEach(() => service.close())

const DAY = { every: '1d' }

/** Each way to write a schedule, with what it answers: a status, and the first error's pointer if there is one. */
async function writes(token: NewToken, target: { job?: string; to?: string }): Promise<readonly string[]> {
  const headers = bearer(await service.token(token))
  const ask = async (method: string, path: string, body: unknown, type = 'application/json') => {
    const response = await service.ask(path, { method, headers: { ...headers, 'content-type': type }, body })
    const { errors = [] } = (await response.clone().json()) as { errors?: { pointer?: string; code?: string }[] }
    return [await outcome(response), errors[0]?.pointer ?? errors[0]?.code].filter(Boolean).join(' ')
  }
  await service.belfry.schedules.put('a/own', { ...DAY, job: 'a/job' })
  return [
    await ask('PUT', '/v1/schedules/a%2F1', { ...DAY, ...target }),
    await ask('POST', '/v1/schedules', { id: 'a/2', ...DAY, ...target }),
    await ask('POST', '/v1/schedules', { ...DAY, ...target }),
    await ask('PATCH', '/v1/schedules/a%2Fown', { ...target }),
    await ask('POST', '/v1/schedules:apply', { schedules: { 'a/3': { ...DAY, ...target } } }),
    await ask('POST', '/v1/schedules:import', JSON.stringify({ id: 'a/4', ...DAY, ...target }), 'application/x-ndjson'),
  ]
}

const DONE = ['201', '201', '201', '200', '200', '200']
const refused = (field: string) => [
  ...Array.from({ length: 4 }, () => `403 FORBIDDEN /${field}`),
  `403 FORBIDDEN /schedules/a~13/${field}`,
  '200 FORBIDDEN',
]

describe('a token with a prefix', () => {
  const token: NewToken = { role: 'operator', prefix: 'a/' }

  it('names jobs and sinks that begin with it', async () => {
    expect(await writes(token, { job: 'a/mail' })).toEqual(DONE)
    expect(await writes({ ...token, role: 'admin' }, { job: 'payroll' })).toEqual(refused('job'))
    expect(await writes(token, { job: 'a' })).toEqual(refused('job'))
    expect(await writes(token, { to: 'hooks' })).toEqual(refused('to'))
    await service.belfry.schedules.list().then(async ({ items }) => {
      for (const { id } of items) await service.belfry.schedules.remove(id)
    })
    expect(await writes(token, { to: 'a/hooks' })).toEqual(DONE)
  })

  it('names what its lists allow, and nothing else', async () => {
    const listed = { ...token, jobs: ['mail', 'report.*'], sinks: ['hooks'] }
    expect(await writes(listed, { job: 'mail' })).toEqual(DONE)
    for (const job of ['mail2', 'report', 'a/mail', 'Mail'])
      expect(await writes(listed, { job })).toEqual(refused('job'))
    expect(await writes(listed, { to: 'a/hooks' })).toEqual(refused('to'))
    expect(await writes({ ...token, jobs: [] }, { job: 'a/mail' })).toEqual(refused('job'))
  })

  it('says which jobs it may name', async () => {
    const headers = bearer(await service.token({ ...token, name: 'ci', jobs: ['mail', 'a/*'] }))
    const body = { ...DAY, job: 'payroll' }
    const response = await service.ask('/v1/schedules/a%2F1', { method: 'PUT', headers, body })
    expect(((await response.json()) as { detail: string }).detail).toMatch(
      /^"ci \(\w+\)" may not use the job "payroll", only these jobs: "mail", "a\/\*"$/,
    )
  })

  it('sees no names of sinks that it may not use in the error of an unknown one', async () => {
    const headers = bearer(await service.token(token))
    const body = { ...DAY, to: 'a/hook' }
    const text = await (await service.ask('/v1/schedules/a%2F1', { method: 'PUT', headers, body })).text()
    expect(text).toContain('SINK_UNKNOWN')
    expect(text).not.toContain('orders')
    const line = JSON.stringify({ id: 'a/4', ...body })
    const imported = await service.ask('/v1/schedules:import', {
      ...{ method: 'POST', body: line, headers: { ...headers, 'content-type': 'application/x-ndjson' } },
    })
    expect(await imported.text()).not.toContain('orders')
  })

  it('does not run what a schedule names that another caller has made', async () => {
    const headers = bearer(await service.token(token))
    const { run } = await service.belfry.schedules.trigger('a/foreign')
    await service.belfry.runs.cancel(run)
    const base = '/v1/schedules/a%2Fforeign'
    const range = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' }
    for (const [method, path, body] of [
      ['POST', `${base}/trigger`, { payload: 'mine' }],
      ['POST', `${base}/backfill`, range],
      ['PATCH', base, { payload: 'mine' }],
      ['POST', `/v1/runs/${run}/retry`, {}],
    ] as const) {
      expect(`${path} ${await outcome(await service.ask(path, { method, headers, body }))}`).toBe(
        `${path} 403 FORBIDDEN`,
      )
    }
    const many = await service.ask('/v1/runs:retry', { method: 'POST', headers, body: { schedule: 'a/foreign' } })
    expect(await many.json()).toMatchObject({ changed: [], refused: 0 })
    expect((await service.belfry.schedules.get('a/foreign'))?.definition.payload).toBe('theirs')
    for (const [method, path] of [
      ['GET', base],
      ['POST', `${base}/pause`],
      ['POST', `${base}/resume`],
      ['DELETE', base],
    ] as const) {
      const response = await service.ask(path, { method, headers, ...(method === 'POST' ? { body: {} } : {}) })
      expect(response.ok).toBe(true)
    }
  })

  it('enqueues jobs that begin with it alone, because others see the runs of theirs', async () => {
    const headers = bearer(await service.token({ ...token, jobs: ['mail', 'a/*'] }))
    const enqueue = async (job: string) =>
      outcome(await service.ask(`/v1/jobs/${encodeURIComponent(job)}/runs`, { method: 'POST', headers, body: {} }))
    expect([await enqueue('mail'), await enqueue('a/x')]).toEqual(['403 FORBIDDEN', '202'])
  })

  it('sees the jobs that it may name in the list of jobs', async () => {
    const other = createBelfry({ store: memory(), roles: ['run'], logger: silentLogger })
    for (const job of ['mail', 'payroll', 'a/x']) other.job(job, { run: () => {} })
    const own = await securedService({ belfry: other })
    const headers = bearer(await own.token({ ...token, jobs: ['mail'] }))
    const { data } = (await (await own.ask('/v1/jobs', { headers })).json()) as { data: { name: string }[] }
    await own.close()
    expect(data.map(({ name }) => name)).toEqual(['a/x', 'mail'])
  })
})

describe('a token without a prefix', () => {
  it('names any job, unless it has a list', async () => {
    expect(await writes({ role: 'operator' }, { job: 'payroll' })).toEqual(DONE)
    expect(await writes({ role: 'operator', jobs: ['mail'] }, { job: 'payroll' })).toEqual(refused('job'))
  })
})

describe('a patch that races with another caller', () => {
  it('is tried again on the version that it was checked on', async () => {
    const headers = bearer(await service.token({ role: 'operator', prefix: 'a/' }))
    await service.belfry.schedules.put('a/own', { ...DAY, job: 'a/job' })
    const { get } = service.belfry.schedules
    let changes = 0
    service.belfry.schedules.get = async (id) => {
      const found = await get.call(service.belfry.schedules, id)
      // Another caller changes the job after the check has read the schedule.
      if (changes++ === 0) await service.belfry.schedules.patch('a/own', { job: 'payroll' })
      return found
    }
    const path = '/v1/schedules/a%2Fown'
    const response = await service.ask(path, { method: 'PATCH', headers, body: { payload: 'mine' } })
    expect(await outcome(response)).toBe('403 FORBIDDEN')
    expect((await get.call(service.belfry.schedules, 'a/own'))?.definition.payload).toBeNull()
  })
})

describe('a token with the role worker', () => {
  it('may call no route yet', async () => {
    const headers = bearer(await service.token({ role: 'worker' }))
    for (const path of ['/v1/schedules', '/v1/runs', '/v1/session', '/v1/jobs', '/v1/audit']) {
      expect(await outcome(await service.ask(path, { headers }))).toBe('403 FORBIDDEN')
    }
  })
})

describe('a new token', () => {
  it.each([
    ['jobs', 'mail'],
    ['jobs', ['']],
    ['sinks', [1]],
    ['sinks', Array.from({ length: 101 }, (_, at) => `s${at}`)],
  ])('is refused with %s %j', async (what, list) => {
    const wanted = { role: 'operator', [what]: list } as NewToken
    await expect(service.tokens.create(wanted)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  it('is answered with its lists', async () => {
    const token = await service.token({ role: 'viewer', name: 'x', prefix: 'a/', jobs: ['mail'], sinks: [] })
    const session = await service.ask('/v1/session', { headers: bearer(token) })
    expect(await session.json()).toMatchObject({ prefix: 'a/', jobs: ['mail'], sinks: [] })
  })
})
