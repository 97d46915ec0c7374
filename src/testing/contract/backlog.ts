import { expect } from 'vitest'
import type { Backlog } from '../../core/store.js'
import { area, key } from './scene.js'

const HOUR = 3_600_000

function dueOf({ targets }: Backlog): Record<string, number> {
  return Object.fromEntries(
    targets.map(({ target, due }) => ['job' in target ? `job ${target.job}` : `sink ${target.sink}`, due]),
  )
}

export const backlog = area('the backlog', {
  'is empty in an empty store': async (scene) => {
    const { now, targets } = await scene.store.runs.backlog(10)
    expect(Math.abs(now - (await scene.store.now()))).toBeLessThan(10_000)
    expect(targets).toEqual([])
  },

  'counts the due runs of each job and sink, at all priorities': async (scene) => {
    for (const priority of [0, 0, 7, -3]) await scene.enqueue({ priority })
    await scene.enqueue({ target: { sink: 'kafka', options: { topic: 'a' } } })
    await scene.enqueue({ target: { sink: 'kafka' } })
    await scene.enqueue({ target: { job: 'Übersicht 🔔' } })
    expect(dueOf(await scene.store.runs.backlog(10))).toEqual({ 'job work': 4, 'sink kafka': 2, 'job Übersicht 🔔': 1 })
  },

  'has the ready instant of the oldest run, and targets without the options of single runs': async (scene) => {
    const now = await scene.store.now()
    await scene.enqueue({ target: { sink: 'kafka', options: { topic: 'a' } }, readyAt: now - 5_000, priority: -1 })
    await scene.enqueue({ target: { sink: 'kafka' }, readyAt: now - 1_000, priority: 5 })
    expect((await scene.store.runs.backlog(10)).targets).toEqual([
      { target: { sink: 'kafka' }, due: 2, more: false, oldestReadyAt: now - 5_000 },
    ])
  },

  'leaves out delayed runs until they are due': async (scene) => {
    for (let count = 0; count < 30; count += 1) await scene.enqueue({ delayMs: HOUR })
    expect((await scene.store.runs.backlog(2)).targets).toEqual([])
    await scene.enqueue()
    expect(dueOf(await scene.store.runs.backlog(2))).toEqual({ 'job work': 1 })
    await scene.elapse(HOUR)
    expect(dueOf(await scene.store.runs.backlog(100))).toEqual({ 'job work': 31 })
  },

  'leaves out running runs, runs that wait for a key, and finished runs': async (scene) => {
    await scene.join()
    for (let count = 0; count < 3; count += 1) await scene.enqueue()
    const first = await scene.claimOne()
    expect(dueOf(await scene.store.runs.backlog(10))).toEqual({ 'job work': 2 })
    await scene.settle(first)
    await scene.claim()
    expect(dueOf(await scene.store.runs.backlog(10))).toEqual({})
    const holder = await scene.enqueue({ key: key('k'), target: { job: 'other' } })
    await scene.enqueue({ key: key('k'), target: { job: 'other' } })
    expect((await scene.claim()).map(({ id }) => id)).toEqual([holder])
    expect(dueOf(await scene.store.runs.backlog(10))).toEqual({})
  },

  'may stop counting at the limit, and then sets `more`': async (scene) => {
    for (let count = 0; count < 5; count += 1) await scene.enqueue()
    const [found] = (await scene.store.runs.backlog(3)).targets
    expect([
      { due: 3, more: true },
      { due: 5, more: false },
    ]).toContainEqual({ due: found?.due, more: found?.more })
    const [all] = (await scene.store.runs.backlog(5)).targets
    expect(all).toMatchObject({ due: 5, more: false })
  },
})
