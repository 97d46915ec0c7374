import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import type { JobOptions, Json, ScheduleFields } from '../../src/index.js'
import { createTestBelfry, type TestOptions } from '../../src/testing/index.js'

const at = (time: string) => `2026-01-01T${time}:00Z`

/** Starts an instance at midnight that has an hourly schedule `a` of the job `report`. */
async function hourly(
  schedule: Partial<ScheduleFields> = {},
  job?: Partial<JobOptions<Json>>,
  options: TestOptions = {},
) {
  const kit = createTestBelfry({ now: at('00:00'), ...options })
  kit.belfry.job('report', { run: () => null, ...job })
  await kit.belfry.start()
  await kit.belfry.schedules.put('a', { cron: '0 * * * *', job: 'report', ...schedule })
  const explain = (time: string) => kit.belfry.schedules.explain('a', at(time))
  return { ...kit, explain }
}

const never = () => new Promise<never>(() => {})

describe('explain', () => {
  it('throws like ticks() for an id that the store has never had', async () => {
    const { belfry } = await hourly()
    const missing = { code: 'SCHEDULE_NOT_FOUND', message: 'there is no schedule "b"' }
    await expect(belfry.schedules.explain('b', at('01:00'))).rejects.toMatchObject(missing)
    await expect(belfry.schedules.explain('b')).rejects.toMatchObject(missing)
  })

  it('unknown-schedule: it was removed, and the history has nothing of the instant', async () => {
    const { belfry, advance } = await hourly()
    await advance('61m')
    await belfry.schedules.remove('a')
    expect(await belfry.schedules.explain('a', at('01:30'))).toEqual({
      at: new Date(at('01:30')),
      status: 'unknown-schedule',
      text: 'There is no schedule "a" now, and nothing is known of this instant.',
    })
  })

  it('not-a-tick: the answer names the neighbouring ticks, also in the middle of a pause', async () => {
    const { belfry, advance, explain } = await hourly()
    const text =
      'The schedule has no tick at that instant: the one before is 2026-01-01T01:00:00Z, the one after is 2026-01-01T02:00:00Z.'
    expect(await explain('01:30')).toMatchObject({ status: 'not-a-tick', text })
    await belfry.schedules.pause('a')
    await advance('5h')
    await belfry.schedules.resume('a')
    expect(await explain('01:30')).toMatchObject({ status: 'not-a-tick', text })
    expect(await explain('02:00')).toMatchObject({ status: 'skipped', reason: 'paused' })
  })

  it('before-creation: the schedule or its timeline was created later', async () => {
    const { belfry, advance } = await hourly()
    const before = await belfry.schedules.explain('a', '2025-12-31T23:00:00Z')
    expect(before).toMatchObject({
      status: 'before-creation',
      text: expect.stringContaining('at 2026-01-01T00:00:00Z'),
    })
    await advance('3h')
    await belfry.schedules.put('a', { cron: '30 * * * *', job: 'report' })
    const changed = await belfry.schedules.explain('a', at('01:30'))
    expect(changed).toMatchObject({ status: 'before-creation', text: expect.stringContaining('2026-01-01T03:00:00Z') })
    // Ticks of the old timeline can still be explained.
    expect(await belfry.schedules.explain('a', at('02:00'))).toMatchObject({ status: 'ran' })
  })

  it('ran: the answer has the start, the end and the attempt', async () => {
    const { advance, explain } = await hourly()
    await advance('90m')
    expect(await explain('01:00')).toMatchObject({
      status: 'ran',
      run: { state: 'succeeded' },
      text: 'It ran: started 2026-01-01T01:00:00Z, ended 2026-01-01T01:00:00Z, attempt 1.',
    })
  })

  it('failed: the answer has the number of attempts and the last error', async () => {
    const fail = () => {
      throw new Error('no paper')
    }
    const { advance, explain } = await hourly({}, { run: fail, retry: { attempts: 2, backoff: 'fixed', delay: '10m' } })
    await advance('65m')
    expect(await explain('01:00')).toMatchObject({
      status: 'waiting',
      text: expect.stringMatching(/^Attempt 1 failed: no paper. The next attempt may start from 2026-01-01T01:/),
    })
    await advance('20m')
    expect(await explain('01:00')).toMatchObject({
      status: 'failed',
      text: expect.stringMatching(/^It ran and failed after 2 attempts: no paper. `belfry retry \S+` runs it again.$/),
    })
  })

  it('running: the answer has the start and the instance', async () => {
    const { belfry, advance, explain } = await hourly({}, { run: never })
    await advance('61m')
    expect(await explain('01:00')).toMatchObject({
      status: 'running',
      text: `It is running since 2026-01-01T01:00:00Z on ${belfry.instance} (${hostname()} pid ${process.pid}), attempt 1.`,
    })
  })

  it('cancelled: by hand', async () => {
    const { belfry, advance, explain, runs } = await hourly({}, { run: never })
    await advance('61m')
    await belfry.runs.cancel((await runs('a'))[0]?.id ?? '')
    await advance('1m')
    expect(await explain('01:00')).toMatchObject({ status: 'cancelled', text: expect.stringMatching(/01:01:05/) })
  })

  it('upcoming: the answer names what will delay the tick', async () => {
    const { belfry, explain } = await hourly()
    expect((await explain('05:00')).text).toBe('It comes at 2026-01-01T05:00:00Z.')
    await belfry.freeze('migration')
    expect(await explain('05:00')).toMatchObject({
      status: 'upcoming',
      text:
        'It comes at 2026-01-01T05:00:00Z. ' +
        'Nothing starts: the store is frozen since 2026-01-01T00:00:00Z (migration), until belfry thaw.',
    })
  })

  it('paused: the answer has since when, the note, and what becomes of the tick', async () => {
    const { belfry, advance, explain } = await hourly()
    await belfry.schedules.pause('a', 'audit')
    await advance('90m')
    const paused = 'The schedule is paused since 2026-01-01T00:00:00Z (audit).'
    expect(await explain('05:00')).toMatchObject({
      status: 'paused',
      text: `${paused} This tick comes only if it is resumed before: belfry resume "a".`,
    })
    expect(await explain('01:00')).toMatchObject({
      status: 'paused',
      text: `${paused} This tick is due, and is skipped as paused when the schedule is resumed.`,
    })
    const { ticks } = await belfry.schedules.ticks('a', { from: at('01:00'), to: at('02:00') })
    expect(ticks.map(({ status }) => status)).toEqual(['paused', 'paused'])
  })

  it('finished: a schedule that has used up its ticks will not tick again', async () => {
    const { belfry, advance, explain } = await hourly({ times: 3 })
    await advance('4h30m')
    const text =
      'The schedule has given all its 3 ticks, the last at 2026-01-01T03:00:00Z, and is finished since 2026-01-01T02:59:59.300Z: ' +
      'it has no tick left to give. It is removed when its history is, which is 7 days after by default.'
    expect(await explain('04:00')).toMatchObject({ status: 'finished', text })
    expect(await explain('09:00')).toMatchObject({ status: 'finished', text })
    const { ticks } = await belfry.schedules.ticks('a', { from: at('03:00'), to: at('05:00') })
    expect(ticks.map(({ status }) => status)).toEqual(['ran', 'finished', 'finished'])
    const kept = await hourly({ times: 1, onFinish: 'keep' })
    await kept.advance('2h')
    expect((await kept.explain('04:00')).text).toMatch(/its one tick.* It stays until it is removed\.$/)
  })

  it('due: no instance has recorded the tick yet', async () => {
    const { advance, explain } = await hourly({}, {}, { roles: ['run'] })
    await advance('61m')
    expect(await explain('01:00')).toMatchObject({
      status: 'due',
      text: expect.stringMatching(/next step of any ticker/),
    })
    const alone = await hourly()
    await alone.belfry.stop()
    await alone.advance('61m')
    const late = await alone.instance({ roles: [] }).schedules.explain('a', at('01:00'))
    expect(late).toMatchObject({
      status: 'due',
      text: expect.stringMatching(/^It is due, and no live instance records/),
    })
  })

  it('waiting: the schedule names a job that no instance runs; put() accepts it', async () => {
    const { belfry, instance, advance } = createTestBelfry({ now: at('00:00'), roles: ['tick'] })
    // This instance has the job's code but does not run the job.
    belfry.job('report', { run: () => null })
    await belfry.start()
    await belfry.schedules.put('a', { cron: '0 * * * *', job: 'report' })
    const nobody = 'No live instance runs the job "report": it waits until one does.'
    expect((await belfry.schedules.explain('a', at('01:00'))).text).toBe(`It comes at 2026-01-01T01:00:00Z. ${nobody}`)
    await advance('61m')
    expect(await belfry.schedules.explain('a', at('01:00'))).toMatchObject({
      status: 'waiting',
      text: `It is recorded and may start from 2026-01-01T01:00:00Z. It is skipped if it has not started by 2026-01-01T02:00:00Z. ${nobody}`,
    })
    const worker = instance({ roles: ['run'] })
    worker.job('report', { run: () => null })
    await worker.start()
    await advance('1m')
    expect(await belfry.schedules.explain('a', at('01:00'))).toMatchObject({ status: 'ran' })
  })

  it('waiting: only the job’s code can compute the run’s key', async () => {
    const { belfry, advance } = createTestBelfry({ now: at('00:00') })
    await belfry.start()
    await belfry.schedules.put('a', { cron: '0 * * * *', job: 'elsewhere' })
    await advance('61m')
    expect(await belfry.schedules.explain('a', at('01:00'))).toMatchObject({
      status: 'waiting',
      text: expect.stringMatching(
        /waits for an instance with the job’s code.*No live instance runs the job "elsewhere"/,
      ),
    })
  })

  it('waiting: an earlier run of the schedule, or the holder of its key, is unfinished', async () => {
    const queued = await hourly({ overlap: 'queue-all' }, { run: never, timeout: '1d' })
    await queued.advance('121m')
    const [running] = await queued.runs('a')
    expect((await queued.explain('02:00')).text).toBe(
      `It is recorded and waits for an earlier run of the schedule to end: run ${running?.id} is running since 2026-01-01T01:00:00Z.`,
    )
    await queued.advance('1h')
    expect((await queued.explain('03:00')).text).toMatch(/; one other comes before it\.$/)
    const keyed = await hourly({}, { run: never, timeout: '1d', exclusive: { whenBusy: 'wait' } })
    await keyed.advance('121m')
    const [holder] = await keyed.runs('a')
    expect((await keyed.explain('02:00')).text).toBe(
      'It is recorded and waits for its exclusive key "job:report:null". ' +
        `It is held by run ${holder?.id} since 2026-01-01T01:00:00Z, until 2026-01-01T02:10:00Z unless it is renewed.`,
    )
    const own = await keyed.belfry.schedules.explain('a', at('02:00'), { names: 'own' })
    expect(own.text).toBe(
      'It is recorded and waits for its exclusive key "job:report:null", which is held since 2026-01-01T01:00:00Z.',
    )
  })

  it('waiting: all slots are taken', async () => {
    const { belfry, advance, explain } = await hourly({}, { run: never, timeout: '1d' }, { concurrency: 1 })
    await advance('61m')
    for (let count = 0; count < 3; count += 1) await belfry.schedules.trigger('a')
    await advance('1h')
    expect((await explain('02:00')).text).toMatch(/It waits for a free slot: 4 runs of the job "report" are due\./)
  })

  it('waiting: while the store is frozen', async () => {
    const { belfry, advance, explain } = await hourly()
    await belfry.freeze()
    await advance('61m')
    expect(await explain('01:00')).toMatchObject({
      status: 'waiting',
      text: expect.stringMatching(/the store is frozen since/),
    })
  })

  it('skipped as overlap, as busy or as past its deadline', async () => {
    const overlap = await hourly({ overlap: 'skip' }, { run: never, timeout: '1d' })
    await overlap.advance('121m')
    expect(await overlap.explain('02:00')).toMatchObject({ status: 'skipped', reason: 'overlap' })
    const busy = await hourly({}, { run: never, timeout: '1d', exclusive: true })
    await busy.advance('121m')
    expect(await busy.explain('02:00')).toMatchObject({
      status: 'skipped',
      reason: 'busy',
      text: 'Skipped: its exclusive key was held by another run.',
    })
    const late = await hourly({ deadline: '5m' })
    await late.belfry.freeze()
    await late.advance('70m')
    await late.belfry.thaw()
    await late.advance('1m')
    expect(await late.explain('01:00')).toMatchObject({ status: 'skipped', reason: 'deadline' })
  })

  it('skipped as missed: the answer says how many ticks were missed', async () => {
    const { belfry, instance, advance } = await hourly({ missed: 'latest' })
    await belfry.stop()
    await advance('4h30m')
    const next = instance()
    next.job('report', { run: () => null })
    await next.start()
    await advance('1m')
    const explain = (time: string) => next.schedules.explain('a', at(time))
    expect(await explain('02:00')).toMatchObject({
      status: 'skipped',
      reason: 'missed',
      text:
        'Skipped: nobody was up to record it or to start it in time, and the missed policy dropped it ' +
        '(one of 3 ticks from 2026-01-01T01:00:00Z to 2026-01-01T03:00:00Z).',
    })
    expect(await explain('04:00')).toMatchObject({ status: 'ran' })
  })

  it('skipped as paused, replaced or removed: the tick was due and had not started', async () => {
    const reasonAfter = async (change: (kit: Awaited<ReturnType<typeof hourly>>) => Promise<unknown>) => {
      const kit = await hourly({}, {}, { roles: ['tick'] })
      await kit.advance('61m')
      await change(kit)
      return kit.explain('01:00')
    }
    expect(await reasonAfter(({ belfry }) => belfry.schedules.pause('a'))).toMatchObject({ reason: 'paused' })
    const put = { cron: '5 * * * *', job: 'report' }
    expect(await reasonAfter(({ belfry }) => belfry.schedules.put('a', put))).toMatchObject({ reason: 'replaced' })
    // The answer remains available after the schedule is removed.
    expect(await reasonAfter(({ belfry }) => belfry.schedules.remove('a'))).toMatchObject({
      status: 'skipped',
      reason: 'removed',
    })
  })

  it('agrees with schedules.ticks() about a removed schedule: ran, failed and skipped', async () => {
    const kit = await hourly({ missed: 'latest' }, { retry: { attempts: 1 } })
    await kit.advance('61m')
    await kit.belfry.stop()
    await kit.advance('4h')
    const next = kit.instance()
    next.job('report', {
      retry: { attempts: 1 },
      run: () => {
        throw new Error('no paper')
      },
    })
    await next.start()
    await kit.advance('1m')
    await next.schedules.remove('a')
    const { ticks, skips } = await next.schedules.ticks('a', { from: at('00:00'), to: at('23:00') })
    expect(ticks.map(({ at: tick, status, planned }) => [tick.toISOString().slice(11, 16), status, planned])).toEqual([
      ['01:00', 'ran', false],
      ['02:00', 'skipped', false],
      ['04:00', 'skipped', false],
      ['05:00', 'failed', false],
    ])
    expect(skips).toMatchObject([{ count: 3, reason: 'missed' }])
    for (const tick of ticks) {
      const explained = await next.schedules.explain('a', tick.at)
      expect(explained).toMatchObject({ status: tick.status, at: tick.at })
      expect(explained.reason).toBe(tick.reason)
      expect(explained.run).toEqual(tick.run)
    }
    // Without an instant, explain() answers for the newest recorded tick.
    expect(await next.schedules.explain('a')).toMatchObject({ status: 'failed', at: new Date(at('05:00')) })
    const first = await next.schedules.ticks('a', { from: at('00:00'), to: at('23:00'), limit: 1 })
    expect(first).toMatchObject({ ticks: [{ status: 'ran' }], next: new Date(at('02:00')) })
    expect((await next.schedules.ticks('a', { from: at('10:00'), to: at('23:00') })).ticks).toEqual([])
    await expect(next.schedules.ticks('b', { from: at('00:00'), to: at('23:00') })).rejects.toMatchObject({
      code: 'SCHEDULE_NOT_FOUND',
    })
    await next.stop()
  })

  it('forgotten: the tick was recorded, and its details have been pruned', async () => {
    const { advance, explain } = await hourly({ keep: 'none' })
    await advance('61m')
    expect(await explain('01:00')).toMatchObject({ status: 'forgotten' })
  })
})
