import { expect } from 'vitest'
import { area, failed, PAST_LEASE_MS, retryIn, SHORT_LEASE_MS, withResult } from './scene.js'

export const settle = area('settle', {
  'a success ends the run with its result': async (scene) => {
    await scene.join()
    const id = await scene.enqueue()
    expect(await scene.settle(await scene.claimOne(), withResult({ sent: [1, 2] }))).toBe('settled')
    const run = await scene.run(id)
    expect(run).toMatchObject({ state: 'succeeded', result: { sent: [1, 2] }, attempt: 1, failures: 0 })
    expect(run.finishedAt).toBeGreaterThanOrEqual(run.startedAt ?? Number.POSITIVE_INFINITY)
    expect(await scene.claim()).toEqual([])
  },

  'a final failure ends the run with its error': async (scene) => {
    await scene.join()
    const id = await scene.enqueue()
    const error = { message: 'broke', code: 'E1', stack: 'at here' }
    await scene.settle(await scene.claimOne(), { kind: 'failed', error })
    expect(await scene.run(id)).toMatchObject({ state: 'failed', error })
  },

  'a retry is ready again after its delay, and counts as a failure': async (scene) => {
    await scene.join()
    const id = await scene.enqueue()
    await scene.settle(await scene.claimOne(), retryIn(600))
    expect(await scene.run(id)).toMatchObject({ state: 'ready', failures: 1, error: { message: 'it broke' } })
    const early = await scene.claimAll()
    expect(early.runs).toEqual([])
    expect(early.nextReadyAt).toBe((await scene.run(id)).readyAt)
    await scene.elapse(650)
    expect(await scene.claimOne()).toMatchObject({ id, attempt: 2, failures: 1, takeovers: 0 })
  },

  'every failure is counted, including the last, and nothing else is': async (scene) => {
    await scene.join()
    const id = await scene.enqueue()
    await scene.settle(await scene.claimOne(), retryIn(0))
    await scene.settle(await scene.claimOne(), { kind: 'released' })
    await scene.settle(await scene.claimOne(), failed())
    expect(await scene.run(id)).toMatchObject({ state: 'failed', attempt: 3, failures: 2 })
    await scene.store.runs.retry(id)
    expect(await scene.run(id)).toMatchObject({ state: 'ready', failures: 0 })
    await scene.settle(await scene.claimOne(), retryIn(0))
    await scene.settle(await scene.claimOne())
    expect(await scene.run(id)).toMatchObject({ state: 'succeeded', failures: 1 })
  },

  'a released run is ready at once, and its failures do not grow': async (scene) => {
    await scene.join()
    const id = await scene.enqueue()
    await scene.settle(await scene.claimOne(), { kind: 'released' })
    expect(await scene.claimOne()).toMatchObject({ id, attempt: 2, failures: 0, takeovers: 0 })
  },

  'a wrong token is stale and changes nothing': async (scene) => {
    await scene.join()
    const id = await scene.enqueue()
    const run = await scene.claimOne()
    const before = await scene.run(id)
    expect(await scene.settle({ id, token: run.token - 1 })).toBe('stale')
    expect(await scene.settle({ id, token: run.token + 1 })).toBe('stale')
    expect(await scene.settle({ id: 'unknown', token: run.token })).toBe('stale')
    expect(await scene.run(id)).toEqual(before)
    expect(await scene.settle(run)).toBe('settled')
  },

  'a repeated settlement is `settled` and changes nothing': async (scene) => {
    await scene.join()
    const run = await (async () => {
      await scene.enqueue()
      return scene.claimOne()
    })()
    await scene.settle(run, retryIn(60_000))
    const before = await scene.run(run.id)
    expect(await scene.settle(run, retryIn(60_000))).toBe('settled')
    expect(await scene.run(run.id)).toEqual(before)
  },

  'a run that ended cannot be settled by another token': async (scene) => {
    await scene.join()
    await scene.enqueue()
    const run = await scene.claimOne()
    await scene.settle(run, withResult(1))
    const before = await scene.run(run.id)
    expect(await scene.settle({ id: run.id, token: run.token + 1 }, failed())).toBe('stale')
    expect(await scene.run(run.id)).toEqual(before)
  },

  'an attempt is stale once the run was claimed again': async (scene) => {
    await scene.join()
    await scene.join('dying', SHORT_LEASE_MS)
    await scene.enqueue()
    const first = await scene.claimOne('dying')
    await scene.elapse(PAST_LEASE_MS)
    await scene.store.runs.rescue(100)
    expect(await scene.settle(first)).toBe('stale')
    const second = await scene.claimOne()
    expect(await scene.settle(first)).toBe('stale')
    expect(await scene.stateOf(first.id)).toBe('running')
    expect(await scene.settle(second)).toBe('settled')
  },

  'a batch answers in order, stale ones among the others': async (scene) => {
    await scene.join()
    for (let count = 0; count < 3; count += 1) await scene.enqueue()
    const runs = await scene.claim()
    const outcome = { kind: 'succeeded' } as const
    const batch = runs.map(({ id, token }, at) => ({ run: id, token: at === 1 ? token - 1 : token, outcome }))
    expect(await scene.store.runs.settle(batch)).toEqual(['settled', 'stale', 'settled'])
  },

  'of a settle and a rescue at once, one takes effect': async (scene) => {
    await scene.join()
    await scene.join('dying', SHORT_LEASE_MS)
    const id = await scene.enqueue()
    const run = await scene.claimOne('dying')
    await scene.elapse(PAST_LEASE_MS)
    const [result, { rescued }] = await Promise.all([scene.settle(run), scene.store.runs.rescue(100)])
    expect([result === 'settled', rescued === 1].filter(Boolean)).toHaveLength(1)
    expect(await scene.stateOf(id)).toBe(result === 'settled' ? 'succeeded' : 'ready')
  },

  'of a settle and a cancel at once, the settle takes effect': async (scene) => {
    await scene.join()
    const id = await scene.enqueue()
    const run = await scene.claimOne()
    const [result, cancelled] = await Promise.all([scene.settle(run), scene.store.runs.cancel(id)])
    expect(result).toBe('settled')
    expect(['finished', 'requested']).toContain(cancelled)
    expect(await scene.stateOf(id)).toBe('succeeded')
  },

  'with `keep: none` ended runs are deleted, with `failures` only succeeded ones': async (scene) => {
    await scene.join()
    const state = async (keep: 'all' | 'failures' | 'none', outcome: Parameters<typeof scene.settle>[1]) => {
      const id = await scene.enqueue({ keep })
      await scene.settle(await scene.claimOne(), outcome)
      return (await scene.store.runs.get(id))?.state
    }
    expect(await state('none', withResult(1))).toBeUndefined()
    expect(await state('none', failed())).toBeUndefined()
    expect(await state('failures', withResult(1))).toBeUndefined()
    expect(await state('failures', failed())).toBe('failed')
    expect(await state('all', withResult(1))).toBe('succeeded')
  },

  'with `keep: none`, a tick that is skipped at its start is still recorded as a skip': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 90_000_000], { deadlineMs: 600, keep: 'none' })
    await scene.advance()
    await scene.elapse(700)
    expect(await scene.claim()).toEqual([])
    expect(await scene.runsOf('a')).toEqual([])
    expect(await scene.skipsOf('a')).toEqual(['1 deadline'])
  },
})
