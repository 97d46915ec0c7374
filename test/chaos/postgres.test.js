// @ts-check
import { expect, it } from 'vitest'
import { survives } from './survive.js'

const seed = Number(process.env.SEED ?? 550128)
const settings = { seconds: 18, processes: 8, schedules: 60, seed }

it(`eight processes with wrong clocks lose no tick and run none twice, through kills, broken connections and crashes (seed ${seed})`, async () => {
  const counts = await survives(settings, () => ({ name: 'postgres' }))
  expect(counts.ticks).toBeGreaterThan(settings.schedules * 20)
  expect(counts.crashes).toBeGreaterThan(0)
  expect(counts.takeoversMeasured).toBeGreaterThan(0)
}, 480_000)
