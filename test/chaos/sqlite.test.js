// @ts-check
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { chaos } from './chaos.js'

const folder = mkdtempSync(join(tmpdir(), 'belfry-chaos-sqlite-'))
const seed = Number(process.env.SEED ?? 550128)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

it(`four processes on one file lose no tick and run none twice, whatever is killed or stopped (seed ${seed})`, async () => {
  const { violations, counts } = await chaos({
    store: { name: 'sqlite', path: join(folder, 'belfry.db') },
    seconds: 15,
    processes: 4,
    schedules: 200,
    seed,
  })
  console.log(JSON.stringify({ seed, ...counts }))
  expect(violations).toEqual([])
  for (const checked of ['inTurn', 'compared']) expect(counts[checked], checked).toBeGreaterThan(0)
  expect(counts.ticks).toBeGreaterThan(200 * 10)
}, 150_000)
