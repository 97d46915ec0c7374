// @ts-check
import { expect, it } from 'vitest'
import { chaos } from './chaos.js'
import { repeatCommand } from './repeat-command.js'

const seed = Number(process.env.SEED ?? 550128)

/** @param {'redis' | 'redis-cluster'} name */
async function survives(name) {
  const settings = { store: name, seconds: 6, processes: 8, schedules: 30, seed }
  /** @type {string[]} */
  const story = []
  const { violations, counts } = await chaos({ ...settings, store: { name }, say: (line) => story.push(line) })
  console.log(JSON.stringify({ seed, ...counts }))
  if (violations.length > 0) console.error([...story, `repeat with: ${repeatCommand(settings)}`].join('\n'))
  expect(violations).toEqual([])
  for (const checked of ['inTurn', 'compared']) expect(counts[checked], checked).toBeGreaterThan(0)
  expect(counts.ticks).toBeGreaterThan(settings.schedules * 8)
  expect(counts.crashes).toBeGreaterThan(1)
  expect(counts.locks).toBeGreaterThan(20)
}

it(`eight processes on one Redis lose no tick and run none twice, whatever is killed, lost, paused or flushed (seed ${seed})`, async () => {
  await survives('redis')
}, 180_000)

it(`eight processes on a cluster go on when a master is killed, and its replica is five seconds behind (seed ${seed})`, async () => {
  await survives('redis-cluster')
}, 180_000)
