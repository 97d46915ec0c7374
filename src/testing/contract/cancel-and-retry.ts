import { expect } from 'vitest'
import { area, failed, key, retryIn, withResult } from './scene.js'

export const cancelAndRetry = area('cancel and retry by hand', {
  'a run that is ready, delayed or waiting is cancelled at once': async (scene) => {
    await scene.join()
    const ready = await scene.enqueue()
    const delayed = await scene.enqueue({ delayMs: 60_000 })
    const unstamped = await scene.enqueue({ key: 'unstamped' })
    for (const id of [ready, delayed, unstamped]) {
      expect(await scene.store.runs.cancel(id)).toBe('cancelled')
      expect(await scene.stateOf(id)).toBe('cancelled')
      expect(await scene.store.runs.cancel(id)).toBe('finished')
    }
    expect(await scene.claim()).toEqual([])
    expect(await scene.store.runs.cancel('unknown')).toBe('missing')
  },

  'a running run is asked to cancel, and its beat says so': async (scene) => {
    await scene.join()
    await scene.enqueue()
    const run = await scene.claimOne()
    expect((await scene.beat('one', [run])).cancel).toEqual([])
    expect(await scene.store.runs.cancel(run.id)).toBe('requested')
    expect(await scene.run(run.id)).toMatchObject({ state: 'running', cancelRequested: true })
    expect(await scene.beat('one', [run])).toMatchObject({ alive: true, lost: [], cancel: [run.id] })
    expect(await scene.settle(run, { kind: 'cancelled' })).toBe('settled')
    expect(await scene.stateOf(run.id)).toBe('cancelled')
  },

  'a run that was asked to cancel is not retried': async (scene) => {
    await scene.join()
    for (const outcome of [retryIn(0), { kind: 'released' } as const]) {
      await scene.enqueue()
      const run = await scene.claimOne()
      await scene.store.runs.cancel(run.id)
      await scene.settle(run, outcome)
      expect(await scene.stateOf(run.id)).toBe('cancelled')
    }
  },

  'a run that succeeds after it was asked to cancel is succeeded': async (scene) => {
    await scene.join()
    await scene.enqueue()
    const run = await scene.claimOne()
    await scene.store.runs.cancel(run.id)
    await scene.settle(run, withResult('done'))
    expect(await scene.run(run.id)).toMatchObject({ state: 'succeeded', result: 'done' })
  },

  'a failed run is retried by hand with all its attempts ahead': async (scene) => {
    await scene.join()
    await scene.enqueue()
    await scene.settle(await scene.claimOne(), retryIn(0))
    const run = await scene.claimOne()
    await scene.settle(run, failed())
    expect(await scene.store.runs.retry(run.id)).toBe('ready')
    const ready = await scene.run(run.id)
    expect(ready).toMatchObject({ state: 'ready', failures: 0, takeovers: 0 })
    expect([ready.error, ready.finishedAt, ready.reason]).toEqual([undefined, undefined, undefined])
    const again = await scene.claimOne()
    expect(again.token).toBeGreaterThan(run.token)
    expect(await scene.settle(again)).toBe('settled')
  },

  'cancelled and skipped runs can be retried, skipped ones also after their deadline': async (scene) => {
    await scene.join()
    const cancelled = await scene.enqueue()
    await scene.store.runs.cancel(cancelled)
    expect(await scene.store.runs.retry(cancelled)).toBe('ready')
    await scene.settle(await scene.claimOne())
    await scene.putTicks('a', [-10, 90_000_000], { deadlineMs: 600 })
    await scene.advance()
    await scene.elapse(700)
    await scene.claim()
    const [skipped] = await scene.runsOf('a')
    expect(skipped?.state).toBe('skipped')
    expect(await scene.store.runs.retry(skipped?.id ?? '')).toBe('ready')
    expect((await scene.claimOne()).id).toBe(skipped?.id)
  },

  'unfinished and succeeded runs cannot be retried': async (scene) => {
    await scene.join()
    const id = await scene.enqueue()
    expect(await scene.store.runs.retry(id)).toBe('refused')
    const run = await scene.claimOne()
    expect(await scene.store.runs.retry(id)).toBe('refused')
    await scene.settle(run)
    expect(await scene.store.runs.retry(id)).toBe('refused')
    expect(await scene.store.runs.retry('unknown')).toBe('missing')
  },

  'a cancelled run that is retried is not asked to cancel again': async (scene) => {
    await scene.join()
    await scene.enqueue()
    const run = await scene.claimOne()
    await scene.store.runs.cancel(run.id)
    await scene.settle(run, { kind: 'cancelled' })
    await scene.store.runs.retry(run.id)
    const again = await scene.claimOne()
    expect(again.cancelRequested).toBeUndefined()
    expect((await scene.beat('one', [again])).cancel).toEqual([])
  },

  'a retry by hand is refused while another run has the dedupe key': async (scene) => {
    const first = await scene.enqueue({ dedupe: 'once' })
    await scene.store.runs.cancel(first)
    const second = await scene.enqueue({ dedupe: 'once' })
    expect(await scene.store.runs.retry(first)).toBe('refused')
    await scene.store.runs.cancel(second)
    expect(await scene.store.runs.retry(first)).toBe('ready')
    expect(await scene.tryEnqueue({ dedupe: 'once' })).toEqual({ outcome: 'duplicate', run: first })
  },

  'a run retried by hand waits for its key like any other run': async (scene) => {
    await scene.join()
    const first = await scene.enqueue({ key: key('k') })
    await scene.store.runs.cancel(first)
    await scene.enqueue({ key: key('k') })
    await scene.claimOne()
    expect(await scene.store.runs.retry(first)).toBe('ready')
    expect(await scene.claim()).toEqual([])
    expect(await scene.stateOf(first)).toBe('waiting key')
  },
})
