// @ts-check
import { expect, it } from 'vitest'
import { survives } from './survive.js'

const seed = Number(process.env.SEED ?? 550128)
const settings = { seconds: 6, processes: 8, schedules: 30, seed }

/** @param {'redis' | 'redis-cluster'} name */
async function survivesOn(name) {
  const counts = await survives(settings, () => ({ name }))
  expect(counts.ticks).toBeGreaterThan(settings.schedules * 8)
  expect(counts.crashes).toBeGreaterThan(1)
  expect(counts.locks).toBeGreaterThan(20)
}

it(`eight processes on one Redis lose no tick and run none twice, through kills, lost replies, pauses and script flushes (seed ${seed})`, async () => {
  await survivesOn('redis')
}, 360_000)

it(`eight processes on a cluster continue when a master is killed and its replica is five seconds behind (seed ${seed})`, async () => {
  await survivesOn('redis-cluster')
}, 360_000)
