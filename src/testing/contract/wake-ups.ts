import { expect } from 'vitest'
import type { Wake } from '../../core/store.js'
import { area, key, retryIn, type Scene } from './scene.js'

const PATIENCE = { steps: 20, stepMs: 100 }

/** Waits for a hint, which may arrive a moment later. A store without wake-ups need not send it. */
async function expectHint(scene: Scene, wake: Wake, act: () => Promise<unknown>): Promise<void> {
  const wakes = new Set<Wake>()
  const unsubscribe = scene.store.subscribe((heard) => wakes.add(heard))
  await act()
  const steps = scene.store.supports.wakeups ? PATIENCE.steps : 1
  for (let step = 0; step < steps && !wakes.has(wake); step += 1) await scene.elapse(PATIENCE.stepMs)
  unsubscribe()
  // A store without wake-ups may still send hints to the handle that made the change.
  if (scene.store.supports.wakeups) expect([...wakes]).toContain(wake)
}

export const wakeUps = area('wake-ups', {
  'a new schedule that is due soon wakes tickers': async (scene) => {
    await expectHint(scene, 'schedules', () => scene.putTicks('a', [5_000]))
    await scene.store.schedules.pause('a', undefined)
    await expectHint(scene, 'schedules', () => scene.store.schedules.resume('a'))
  },

  'a write to a schedule that is due much later sends no hint': async (scene) => {
    const wakes = new Set<Wake>()
    const unsubscribe = scene.store.subscribe((heard) => wakes.add(heard))
    await scene.putTicks('a', [3_600_000])
    await scene.putTicks('a', [7_200_000])
    await scene.store.schedules.pause('a', undefined)
    await scene.store.schedules.resume('a')
    await scene.store.schedules.remove(['a'])
    for (let step = 0; step < 2; step += 1) await scene.elapse(PATIENCE.stepMs)
    unsubscribe()
    expect([...wakes]).not.toContain('schedules')
  },

  'a run that becomes ready wakes dispatchers': async (scene) => {
    await expectHint(scene, 'runs', () => scene.enqueue())
    await scene.putTicks('a', [-10, 90_000_000])
    await expectHint(scene, 'runs', () => scene.advance())
  },

  'a freed key wakes dispatchers': async (scene) => {
    await scene.join()
    await scene.enqueue({ key: key('k') })
    await scene.enqueue({ key: key('k') })
    const [run] = await scene.claim()
    await expectHint(scene, 'runs', () => scene.settle(run ?? { id: '', token: 0 }))
  },

  'a freed lock wakes its waiters': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'b', { waitMs: 60_000 })
    await expectHint(scene, 'leases', () => scene.store.leases.release({ name: 'l', holder: 'a' }))
  },

  'a cancel of a running run wakes its instance': async (scene) => {
    await scene.join()
    const id = await scene.enqueue()
    await scene.claimOne()
    await expectHint(scene, 'attempts', () => scene.store.runs.cancel(id))
  },

  'a finished run wakes those that wait for it': async (scene) => {
    await scene.join()
    await scene.enqueue()
    const run = await scene.claimOne()
    await expectHint(scene, 'settled', () => scene.settle(run))
  },

  'a thaw wakes dispatchers': async (scene) => {
    await scene.store.freeze(undefined)
    await expectHint(scene, 'runs', () => scene.store.thaw())
  },

  'an unsubscribed listener hears nothing': async (scene) => {
    const wakes: Wake[] = []
    const unsubscribe = scene.store.subscribe((wake) => wakes.push(wake))
    unsubscribe()
    await scene.enqueue()
    await scene.elapse(100)
    expect(wakes).toEqual([])
  },

  'polling alone finds all changes': async (scene) => {
    await scene.join()
    await scene.enqueue()
    await scene.settle(await scene.claimOne(), retryIn(0))
    expect(await scene.claim()).toHaveLength(1)
  },
})
