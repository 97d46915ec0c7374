import { describe, expect, it } from 'vitest'
import type { Overlap } from '../../src/index.js'
import { createTestBelfry } from '../../src/testing/index.js'

/** An hourly schedule whose first run takes two and a half hours and whose other runs take a minute. */
async function runHourly(overlap: Overlap, handler: 'endsOnSignal' | 'ignoresSignal' = 'endsOnSignal') {
  const { belfry, advance, clock, runs } = createTestBelfry({ now: '2026-01-01T00:00:00Z' })
  const at = () => new Date(clock.now()).toISOString().slice(11, 19)
  const starts: string[] = []
  const aborted: string[] = []
  let [now, most] = [0, 0]
  belfry.job('report', {
    timeout: '1d',
    run: async ({ tick, signal }) => {
      starts.push(`${tick.toISOString().slice(11, 16)} at ${at()}`)
      now += 1
      most = Math.max(most, now)
      const worksMs = starts.length === 1 ? 9_000_000 : 60_000
      await new Promise<void>((resolve) => {
        clock.after(worksMs, resolve)
        signal.addEventListener('abort', () => {
          aborted.push(at())
          if (handler === 'endsOnSignal') resolve()
        })
      })
      now -= 1
    },
  })
  belfry.schedule('report', { cron: '0 * * * *', job: 'report', overlap, times: 5 })
  await belfry.start()
  await advance('8h')
  const ends = (await runs('report')).map(
    ({ tick, state }) => `${new Date(tick ?? 0).toISOString().slice(11, 16)} ${state}`,
  )
  const reasons = await Promise.all(
    [1, 2, 3, 4, 5].map(
      async (hour) => (await belfry.schedules.explain('report', `2026-01-01T0${hour}:00:00Z`)).reason,
    ),
  )
  return { starts, most, ends, aborted, reasons }
}

describe('overlap', () => {
  it('allow: every tick starts on time, in parallel with earlier ones', async () => {
    const { starts, most } = await runHourly('allow')
    expect(starts).toEqual([1, 2, 3, 4, 5].map((hour) => `0${hour}:00 at 0${hour}:00:00`))
    expect(most).toBe(2)
  })

  it('skip: a tick is skipped while an earlier run is unfinished, and does not count as a tick', async () => {
    const { starts, most, reasons } = await runHourly('skip')
    expect(starts).toEqual([1, 4, 5, 6, 7].map((hour) => `0${hour}:00 at 0${hour}:00:00`))
    expect(reasons).toEqual([undefined, 'overlap', 'overlap', undefined, undefined])
    expect(most).toBe(1)
  })

  it('queue-one: one run waits; later ticks are skipped until it starts', async () => {
    const { starts, most, reasons } = await runHourly('queue-one')
    expect(starts.slice(0, 3)).toEqual(['01:00 at 01:00:00', '02:00 at 03:30:00', '04:00 at 04:00:00'])
    expect(reasons).toEqual([undefined, undefined, 'overlap', undefined, undefined])
    expect(most).toBe(1)
  })

  it('queue-all: all runs wait, oldest first', async () => {
    const { starts, most, ends } = await runHourly('queue-all')
    expect(starts).toEqual([
      '01:00 at 01:00:00',
      '02:00 at 03:30:00',
      '03:00 at 03:31:00',
      '04:00 at 04:00:00',
      '05:00 at 05:00:00',
    ])
    expect(new Set(ends.map((end) => end.slice(6)))).toEqual(new Set(['succeeded']))
    expect(most).toBe(1)
  })

  it('cancel-running: the running attempt is asked to end, and the new run starts after it', async () => {
    const { starts, most, aborted } = await runHourly('cancel-running')
    expect(aborted).toEqual(['02:00:00'])
    expect(starts.slice(0, 2)).toEqual(['01:00 at 01:00:00', '02:00 at 02:00:00'])
    expect(most).toBe(1)
  })

  it('cancel-running: an attempt that does not end is fenced after 5 s', async () => {
    const { starts, ends } = await runHourly('cancel-running', 'ignoresSignal')
    expect(starts.slice(0, 2)).toEqual(['01:00 at 01:00:00', '02:00 at 02:00:05'])
    expect(ends[0]).toBe('01:00 cancelled')
    expect(ends[1]).toBe('02:00 succeeded')
  })

  it('is decided per schedule and `exclusive` per key: a run starts when both allow it', async () => {
    const { belfry, advance, clock } = createTestBelfry({ now: '2026-01-01T00:00:00Z' })
    let [now, most] = [0, 0]
    const job = belfry.job('report', {
      exclusive: { by: ['tenant'], whenBusy: 'wait' },
      run: async () => {
        now += 1
        most = Math.max(most, now)
        await new Promise<void>((resolve) => clock.after(90_000, resolve))
        now -= 1
      },
    })
    for (const id of ['a', 'b']) {
      belfry.schedule(id, { cron: '* * * * *', job, payload: { tenant: 1, id }, overlap: 'skip', times: 2 })
    }
    await belfry.start()
    await advance('1h')
    expect(most).toBe(1)
    expect((await belfry.runs.list({ job: 'report', state: 'succeeded' })).items).toHaveLength(4)
  })
})
