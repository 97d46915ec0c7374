import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { inputOf } from '../../src/api/schedules/schedule-input-of.js'
import type { ScheduleFields } from '../../src/index.js'
import { createTestBelfry } from '../../src/testing/index.js'
import { durationMs, durationText } from '../../src/time/duration.js'

describe('a schedule converted back to text', () => {
  it('is parsed to the same definition', async () => {
    const { belfry } = createTestBelfry()
    const inputs: ScheduleFields[] = [
      { cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', dst: { gap: 'skip' }, job: 'a', payload: { x: [1, null] } },
      { every: '1h30m', to: 'kafka', toOptions: { topic: 't' }, overlap: 'queue-one', missed: 'skip', jitter: 1_234 },
      { at: ['2027-01-01T00:00:00.250Z', '2028-01-01'], timezone: 'Asia/Tokyo', job: 'a', times: 2 },
      { at: 1_900_000_000_000, job: 'a', onFinish: 'keep', keep: 'failures', priority: -3 },
      { cron: '@every 90s', job: 'a', startsAt: '2027-01-01T00:00:00Z', endsAt: '2028-01-01T00:00:00Z' },
      { cron: '@daily', job: 'a', missed: { policy: 'all', within: '1d', max: 7 }, deadline: 'PT5M' },
    ]
    for (const input of inputs) {
      const definition = await belfry.schedules.parse('x', input)
      expect(await belfry.schedules.parse('x', inputOf(definition))).toEqual(definition)
    }
  })

  it('writes each duration so that parsing returns the same value', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 36_525 * 86_400_000 }), (ms) => durationMs(durationText(ms)) === ms),
      { seed: 7 },
    )
    expect([90_000, 5_400_000, 0, 86_400_000 + 1].map(durationText)).toEqual(['1m30s', '1h30m', '0s', '1d1ms'])
  })
})

describe('a patch', () => {
  it('changes the fields it names and leaves the rest', async () => {
    const { belfry } = createTestBelfry()
    await belfry.start()
    await belfry.schedules.put('x', {
      cron: '0 9 * * *',
      timezone: 'Europe/Rome',
      job: 'a',
      payload: { n: 1 },
      jitter: '5s',
    })
    const patched = await belfry.schedules.patch('x', { every: '15m', jitter: null })
    expect(patched.outcome).toBe('updated')
    expect(patched.definition).toMatchObject({ timeline: { every: 900_000 }, jitterMs: 0, payload: { n: 1 } })
    expect((await belfry.schedules.patch('x', { to: 'kafka' })).definition.target).toEqual({ sink: 'kafka' })
    expect((await belfry.schedules.patch('x', {})).outcome).toBe('unchanged')
    await expect(belfry.schedules.patch('x', { every: '1h' }, { ifVersion: 1 })).rejects.toMatchObject({
      code: 'VERSION_CONFLICT',
    })
    await expect(belfry.schedules.patch('y', {})).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' })
    await belfry.stop()
  })
})

describe('enqueue by name', () => {
  it('leaves the exclusive key to an instance that has the job’s code', async () => {
    const { belfry, instance, advance } = createTestBelfry()
    await belfry.start()
    const { run } = await belfry.enqueue('resize', { image: 7 }, { priority: 5 })
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'waiting', waitsFor: 'stamp', priority: 5 })
    const worker = instance()
    worker.job('resize', { exclusive: (payload: { image: number }) => payload.image, run: () => 'done' })
    await worker.start()
    await advance('2m')
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'succeeded', result: 'done' })
    expect(await belfry.jobs()).toMatchObject([{ name: 'resize', instances: [worker.instance] }])
    await worker.stop()
    await belfry.stop()
  })

  it('with a dedupe key adds nothing when repeated; the same holds for a trigger', async () => {
    const { belfry } = createTestBelfry()
    await belfry.start()
    const first = await belfry.enqueue('a', null, { key: 'k' })
    expect(await belfry.enqueue('a', null, { key: 'k' })).toEqual({ outcome: 'duplicate', run: first.run })
    await belfry.schedules.put('x', { every: '1h', job: 'a' })
    const trigger = await belfry.schedules.trigger('x', { key: 't', keyFor: '1d' })
    expect(await belfry.schedules.trigger('x', { key: 't', keyFor: '1d' })).toEqual({
      outcome: 'duplicate',
      run: trigger.run,
    })
    await belfry.stop()
  })
})

describe('locks granted to other programs', () => {
  it('are granted, extended and released by token', async () => {
    const { belfry, advance } = createTestBelfry()
    await belfry.start()
    const lease = await belfry.locks.grant('invoice', { ttl: '10s' })
    if (lease === undefined) throw new Error('it was free')
    expect(await belfry.locks.grant('invoice')).toBeUndefined()
    expect(await belfry.locks.grant('invoice', { holder: lease.holder, ttl: '10s' })).toMatchObject({
      token: lease.token,
    })
    const renewed = await belfry.locks.renewGrant('invoice', { token: lease.token }, '60s')
    expect(renewed?.expiresAt).toBe((await belfry.stats()).now.getTime() + 60_000)
    expect(await belfry.locks.renewGrant('invoice', { token: lease.token + 1 })).toBeUndefined()
    expect(await belfry.locks.releaseGrant('invoice', { token: lease.token + 1 })).toBe(false)
    await advance('61s')
    // The lease has expired, but no other caller took the lock: its holder may renew it, the token alone is not enough.
    expect(await belfry.locks.renewGrant('invoice', { token: lease.token })).toBeUndefined()
    expect(await belfry.locks.renewGrant('invoice', { token: lease.token, holder: lease.holder })).toBeDefined()
    expect(await belfry.locks.releaseGrant('invoice', { token: lease.token })).toBe(true)
    expect(await belfry.locks.grant('invoice')).toBeDefined()
    await belfry.stop()
  })

  it('outlive the process that granted them', async () => {
    const { belfry, instance } = createTestBelfry()
    await belfry.start()
    const lease = await belfry.locks.grant('invoice', { ttl: '10s' })
    await belfry.stop()
    const other = instance()
    await other.start()
    expect(await other.locks.inspect('invoice')).toMatchObject([{ token: lease?.token }])
    await other.stop()
  })

  it('stop waiting when the caller’s signal aborts', async () => {
    const { belfry, advance } = createTestBelfry()
    await belfry.start()
    await belfry.locks.grant('invoice', { ttl: '5s' })
    const gone = new AbortController()
    const waiting = belfry.locks.grant('invoice', { wait: '1m', signal: gone.signal })
    gone.abort()
    await advance('6s')
    expect(await waiting).toBeUndefined()
    expect(await belfry.locks.inspect('invoice')).toEqual([])
    await belfry.stop()
  })
})

describe('bulk operations', () => {
  it.each(['cancelMany', 'retryMany'] as const)('mean every run only if they say so: %s', async (change) => {
    const { belfry } = createTestBelfry()
    await belfry.start()
    for (const query of [{}, { limit: 3 }, { state: ['failed' as const] }, { prefix: '' }, { all: false }]) {
      await expect(belfry.runs[change](query)).rejects.toThrow('all: true to mean every run')
    }
    await expect(belfry.runs[change]({ all: true, job: 'a' })).rejects.toThrow(
      'all: true means every run, and job only some',
    )
    await expect(belfry.runs[change]({ all: true })).resolves.toMatchObject({ changed: [] })
    await expect(belfry.runs[change]({ prefix: 'a/' })).resolves.toMatchObject({ changed: [] })
    await belfry.stop()
  })

  it('retry and cancel the matching runs page by page', async () => {
    const { belfry } = createTestBelfry()
    await belfry.start()
    for (let n = 0; n < 5; n += 1) await belfry.enqueue('a', n, { in: '1h' })
    await belfry.enqueue('b', 0, { in: '1h' })
    const first = await belfry.runs.cancelMany({ job: 'a', limit: 3 })
    expect(first.changed).toHaveLength(3)
    const second = await belfry.runs.cancelMany({ job: 'a', limit: 3, ...(first.next ? { after: first.next } : {}) })
    expect(second.changed).toHaveLength(2)
    expect((await belfry.runs.retryMany({ job: 'a' })).changed).toHaveLength(5)
    await expect(belfry.runs.retryMany({ job: 'a', state: ['running'] })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    expect(await belfry.stats()).toMatchObject({
      due: { count: 0, more: false },
      waiting: { count: 6 },
      instances: { live: 1, gone: 0 },
    })
    await belfry.stop()
  })

  it('put the valid schedules and report each invalid one', async () => {
    const { belfry } = createTestBelfry()
    await belfry.start()
    const results = await belfry.schedules.putMany(
      [
        ['a', { every: '1h', job: 'j' }],
        ['b', { cron: 'nonsense', job: 'j' }],
        ['c', { at: '2001-01-01T00:00:00Z', job: 'j' }],
        ['a', { every: '1h', job: 'j' }],
      ],
      { whenRefused: 'skip' },
    )
    expect(results.map(({ outcome }) => outcome)).toEqual(['created', 'refused', 'refused', 'unchanged'])
    await belfry.stop()
  })
})

describe('the ticks of a range', () => {
  it('include runs, skips and upcoming ticks', async () => {
    const { belfry, advance } = createTestBelfry({ now: '2026-01-01T00:00:00Z' })
    belfry.job('a', { run: () => 1 })
    await belfry.start()
    await belfry.schedules.put('x', { cron: '0 * * * *', job: 'a' })
    await advance('2h')
    await belfry.schedules.pause('x')
    await advance('2h')
    await belfry.schedules.resume('x')
    const { ticks, skips, next } = await belfry.schedules.ticks('x', {
      from: '2025-12-31T23:00:00Z',
      to: '2026-01-01T08:00:00Z',
      limit: 8,
    })
    expect(ticks.map(({ status }) => status)).toEqual([
      ...['before-creation', 'before-creation', 'ran', 'ran', 'skipped', 'skipped', 'upcoming', 'upcoming'],
    ])
    expect(skips).toMatchObject([{ count: 2, reason: 'paused' }])
    expect(next).toEqual(new Date('2026-01-01T07:00:00Z'))
    await belfry.stop()
  })
})
