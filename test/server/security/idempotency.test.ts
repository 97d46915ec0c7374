/** Idempotency-Key between callers: no caller can occupy what another caller's request will create. */
import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bearer, outcome, type SecuredService, securedService } from './secured-service.js'

let service: SecuredService
let victim: Record<string, string>
let attacker: Record<string, string>
let victimName: string

beforeEach(async () => {
  service = await securedService()
  victim = bearer(await service.token({ role: 'operator', prefix: 'a/', name: 'victim' }))
  attacker = bearer(await service.token({ role: 'operator', prefix: 'a/', name: 'attacker' }))
  victimName = ((await (await service.ask('/v1/session', { headers: victim })).json()) as { name: string }).name
})

afterEach(() => service.close())

const PATH = '/v1/jobs/a%2Fmail/runs'
const KEY = { 'idempotency-key': 'order-7' }

async function enqueue(headers: Record<string, string>, body: object, path = PATH) {
  const response = await service.ask(path, { method: 'POST', headers, body })
  return { response, body: (await response.clone().json()) as { outcome: string; runId: string; run: RunBody } }
}

interface RunBody {
  readonly payload: unknown
  readonly dedupe?: string
}

/** The name as one could compute it from what is public: the caller's name, the request and its key. */
function computed(): string {
  return createHash('sha256')
    .update(JSON.stringify([victimName, 'POST', PATH, '', 'order-7']))
    .digest('hex')
}

describe('the outcome of a request with an Idempotency-Key', () => {
  it('cannot be prepared by another caller that computes its name', async () => {
    await enqueue(attacker, { key: computed(), payload: 'forged', in: '1h' })
    const { body } = await enqueue({ ...victim, ...KEY }, { payload: 'genuine', in: '1h' })
    expect(body).toMatchObject({ outcome: 'enqueued', run: { payload: 'genuine' } })
  })

  it('cannot be occupied by a caller that learned the name of the run', async () => {
    const { body } = await enqueue({ ...victim, ...KEY }, { payload: 'genuine', in: '1h' })
    const stored = (await service.belfry.runs.get(body.runId))?.dedupe ?? ''
    expect(stored).toMatch(/^belfry:idempotency:[0-9a-f]{64}$/)
    for (const key of [stored, 'belfry:idempotency:', 'belfry:idempotency:x']) {
      const { response } = await enqueue(attacker, { key, in: '1h' })
      expect(await outcome(response)).toBe('422 NAME_INVALID')
    }
  })

  it('is not the schedule that another caller has put under a computed id', async () => {
    const body = { every: '1h', job: 'a/mail', payload: 'forged' }
    const id = createHash('sha256')
      .update(JSON.stringify([victimName, 'POST', '/v1/schedules', '', 'order-7']))
      .digest('hex')
    await service.ask(`/v1/schedules/a%2F${id}`, { method: 'PUT', headers: attacker, body })
    const made = await service.ask('/v1/schedules', {
      ...{ method: 'POST', headers: { ...victim, ...KEY } },
      body: { ...body, payload: 'genuine' },
    })
    expect(await made.json()).toMatchObject({ payload: 'genuine' })
  })

  it('belongs to its caller: two callers with one key make two runs', async () => {
    const one = await enqueue({ ...victim, ...KEY }, { in: '1h' })
    const other = await enqueue({ ...attacker, ...KEY }, { in: '1h' })
    expect(other.body).toMatchObject({ outcome: 'enqueued' })
    expect(other.body.runId).not.toBe(one.body.runId)
  })
})

describe('a repeated request', () => {
  it.each(['/v1/jobs/a%2fmail/runs', '/v1/jobs/%61%2Fmail/runs', '/v1/%6Aobs/a%2Fm%61il/runs'])(
    'is recognised by any percent-spelling of its path: %s',
    async (spelling) => {
      const first = await enqueue({ ...victim, ...KEY }, { in: '1h' })
      const again = await enqueue({ ...victim, ...KEY }, { in: '1h' }, spelling)
      expect(again.response.headers.get('idempotency-replayed')).toBe('true')
      expect(again.body).toEqual(first.body)
    },
  )

  it('differs from one whose path has other segments', async () => {
    const first = await enqueue({ ...victim, ...KEY }, { in: '1h' })
    const other = await enqueue({ ...victim, ...KEY }, { in: '1h' }, '/v1/jobs/a%2Fma%2569l/runs')
    expect(other.body.outcome).toBe('enqueued')
    expect(other.response.headers.get('idempotency-replayed')).toBeNull()
    expect(other.body.runId).not.toBe(first.body.runId)
  })

  it('finds its run after the process died before it stored the answer', async () => {
    const first = await enqueue({ ...victim, ...KEY }, { in: '1h' })
    const { items } = await service.belfry.records.list({ kind: 'idempotency', limit: 10 })
    for (const { id } of items) await service.belfry.records.remove('idempotency', id)
    expect((await enqueue({ ...victim, ...KEY }, { in: '1h' })).body).toEqual(first.body)
  })
})
