import { expect } from 'vitest'
import { behaviours, type TestBed } from './test-bed.js'

const never = () => new Promise<never>(() => {})

/** A schedule that fires once, a second from now, and a function that explains that tick. */
async function once(bed: TestBed, run: () => unknown, options: object = {}) {
  const belfry = await bed.instance()
  belfry.job('report', { run: async () => run(), timeout: '1h', ...options })
  await belfry.start()
  const at = new Date((await bed.now()) + 1_000)
  const put = (id: string) => belfry.schedules.put(id, { at, job: 'report', onFinish: 'keep' })
  await put('a')
  const explain = (id = 'a') => belfry.schedules.explain(id, at)
  return { belfry, at, put, explain }
}

behaviours('explain', (behaviour) => {
  behaviour('X1', 'a run between attempts: its error and the next attempt', async (bed) => {
    const fail = () => {
      throw new Error('no paper')
    }
    const { explain } = await once(bed, fail, { retry: { attempts: 2, delay: '1h' } })
    await bed.until(async () => (await explain()).run?.failures === 1, 'the first attempt to fail')
    const { status, text, run } = await explain()
    expect(status).toBe('waiting')
    const next = new Date(run?.readyAt ?? 0).toISOString().replace('.000Z', 'Z')
    expect(text).toBe(`Attempt 1 failed: no paper. The next attempt may start from ${next}.`)
  })

  behaviour('X2', 'a run behind a busy key: who holds it, and how many come before it', async (bed) => {
    const { put, explain } = await once(bed, never, { exclusive: { whenBusy: 'wait' } })
    await put('b')
    await put('c')
    const all = () => Promise.all(['a', 'b', 'c'].map((id) => explain(id)))
    const isBehind = ({ text }: { text: string }) => text.includes('waits for its exclusive key')
    await bed.until(async () => (await all()).filter(isBehind).length === 2, 'two to wait')
    const [holder] = (await all()).filter(({ status }) => status === 'running')
    const waiting = (await all()).filter(({ status }) => status === 'waiting').map(({ text }) => text)
    for (const text of waiting) expect(text).toContain(`It is held by run ${holder?.run?.id} since 20`)
    expect(waiting.filter((text) => text.includes('; one other comes before it.'))).toHaveLength(1)
  })

  behaviour('X3', 'a paused, a finished and an unknown schedule', async (bed) => {
    const { belfry, at, put, explain } = await once(bed, () => null)
    await put('b')
    await belfry.schedules.pause('b', 'audit')
    await bed.until(async () => (await explain()).status === 'ran', 'the run to end')
    expect(await explain('b')).toMatchObject({ status: 'paused', text: expect.stringContaining('(audit)') })
    const { ticks } = await belfry.schedules.ticks('b', { from: at, to: at })
    expect(ticks).toMatchObject([{ status: 'paused' }])
    await expect(explain('never')).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' })
    const start = await bed.now()
    await belfry.schedules.put('twice', { every: '1s', times: 2, job: 'report', onFinish: 'keep' })
    await bed.until(async () => (await belfry.schedules.get('twice'))?.state === 'finished', 'both ticks')
    const anchor = (await belfry.schedules.get('twice'))?.anchor ?? start
    const later = await belfry.schedules.explain('twice', new Date(anchor + 5_000))
    expect(later).toMatchObject({ status: 'finished', text: expect.stringContaining('has given all its 2 ticks') })
  })

  behaviour('X4', 'a frozen store, and a job that no instance has', async (bed) => {
    const { belfry, at, explain } = await once(bed, () => null)
    await belfry.schedules.put('lost', { at, job: 'elsewhere' })
    await belfry.freeze('moving')
    await bed.until(async () => (await explain('lost')).status === 'waiting', 'the tick to be recorded')
    expect((await explain('lost')).text).toMatch(
      /frozen since .*\(moving\).* No live instance runs the job "elsewhere"/,
    )
    await belfry.thaw()
  })
})
