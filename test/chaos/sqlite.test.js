// @ts-check
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { survives } from './survive.js'

const folder = mkdtempSync(join(tmpdir(), 'belfry-chaos-sqlite-'))
const seed = Number(process.env.SEED ?? 550128)
const settings = { seconds: 15, processes: 4, schedules: 200, seed }

afterAll(() => rmSync(folder, { recursive: true, force: true }))

it(`four processes on one file lose no tick and run none twice, through kills and pauses (seed ${seed})`, async () => {
  let tries = 0
  const counts = await survives(settings, () => {
    tries += 1
    return { name: 'sqlite', path: join(folder, `belfry-${tries}.db`) }
  })
  expect(counts.ticks).toBeGreaterThan(200 * 10)
  expect(counts.takeoversMeasured).toBeGreaterThan(0)
}, 300_000)
